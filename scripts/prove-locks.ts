// Proves that the locks on the architecture hold: each real tool, with its real settings, is silent on what is
// allowed and refuses each violation that is planted in a skeleton of the repository.
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { arrowPlants } from './locks/arrow-plants.ts'
import { compilerPlants } from './locks/compiler-plants.ts'
import { habitPlants } from './locks/habit-plants.ts'
import type { Plant, Refusal } from './locks/plant.ts'
import { purityPlants } from './locks/purity-plants.ts'
import { buildSkeleton, importsOfCore, plantFiles } from './locks/skeleton.ts'
import { pnpm } from './pnpm.ts'

const binaries = join(import.meta.dirname, '../node_modules/.bin')

interface Answer {
  readonly status: number | null
  readonly output: string
}

function call(root: string, command: readonly [string, ...string[]]): Answer {
  const [file, ...parameters] = command
  const { status, stdout, stderr } = spawnSync(file, parameters, { cwd: root, encoding: 'utf8' })
  return { status, output: stdout + stderr }
}

/** Runs a tool in a fresh skeleton. */
function inSkeleton<T>(run: (root: string) => T): T {
  const root = buildSkeleton()
  try {
    return run(root)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

function lint(root: string): readonly Refusal[] {
  const { output } = call(root, [join(binaries, 'oxlint'), '--format', 'json'])
  const { diagnostics } = JSON.parse(output) as { diagnostics: { filename: string; code: string }[] }
  return diagnostics.map(({ filename, code }) => ({ path: filename, code }))
}

function compile(root: string): readonly Refusal[] {
  plantFiles(root, { 'packages/core/src/runtime/dependencies.ts': importsOfCore() })
  const { output } = call(root, [join(binaries, 'tsc'), '-b', '--pretty', 'false'])
  return [...output.matchAll(/^(.+?)\(\d+,\d+\): error (TS\d+)/gm)].map(([, path = '', code = '']) => ({
    path,
    code,
  }))
}

/** What is wrong with the locks that one tool holds; nothing when they hold. */
function proveTwins(
  tool: string,
  plants: readonly Plant[],
  run: (root: string) => readonly Refusal[],
): string[] {
  const trial = (side: 'allowed' | 'refused'): readonly Refusal[] =>
    inSkeleton((root) => {
      plantFiles(root, Object.fromEntries(plants.map((plant) => [plant.path, plant[side]])))
      return run(root)
    })
  const falseAlarms = trial('allowed').map(
    ({ path, code }) => `${tool} refuses what is allowed: ${path}: ${code}`,
  )
  const refusals = trial('refused')
  const silent = plants.filter(
    ({ path, code }) =>
      !refusals.some((refusal) => refusal.path === path && code.split(' ').includes(refusal.code)),
  )
  return [...falseAlarms, ...silent.map(({ claim, path }) => `${tool} does not keep: ${claim} (${path})`)]
}

/** Only our own packages, so that installing needs no network. */
function keepOwnDependencies(root: string, name: string, added: Readonly<Record<string, string>>): void {
  const path = join(root, 'packages', name, 'package.json')
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as { dependencies?: Record<string, string> }
  const own = Object.entries(manifest.dependencies ?? {}).filter(([dependency]) =>
    dependency.startsWith('@tallystick/'),
  )
  const dependencies = { ...Object.fromEntries(own), ...added }
  writeFileSync(path, JSON.stringify({ name: `@tallystick/${name}`, version: '0.0.0', dependencies }))
}

function proveWorkspace(): readonly string[] {
  const install = (added: Readonly<Record<string, string>>): Answer =>
    inSkeleton((root) => {
      for (const name of ['cli', 'ledger', 'providers', 'tools']) keepOwnDependencies(root, name, {})
      keepOwnDependencies(root, 'core', added)
      plantFiles(root, { 'package.json': JSON.stringify({ name: 'skeleton', private: true }) })
      rmSync(join(root, 'node_modules'), { recursive: true })
      rmSync(join(root, 'examples'), { recursive: true, force: true })
      return call(root, [...pnpm, 'install', '--offline', '--lockfile-only'])
    })
  const allowed = install({})
  const refused = install({ '@tallystick/ledger': 'workspace:^' })
  return [
    ...(allowed.status === 0 ? [] : [`pnpm refuses what is allowed: ${allowed.output}`]),
    ...(refused.status !== 0 && refused.output.includes('ERR_PNPM_DISALLOW_WORKSPACE_CYCLES')
      ? []
      : ['pnpm does not keep: packages do not depend on each other in a circle']),
  ]
}

const lintPlants = [...arrowPlants, ...purityPlants, ...habitPlants]
const faults = [
  ...proveTwins('oxlint', lintPlants, lint),
  ...proveTwins('tsc', compilerPlants, compile),
  ...proveWorkspace(),
]
for (const fault of faults) console.log(fault)
const tried = lintPlants.length + compilerPlants.length + 1
console.log(`locks: ${tried} tried, ${faults.length} faults`)
process.exitCode = faults.length > 0 ? 1 : 0
