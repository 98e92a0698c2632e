// Looks at each package as its users get it: packs it, and has publint and attw judge the tarball. Then installs
// all of them side by side and loads every entry and every command in plain Node, from the compiled files.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pnpm } from './pnpm.ts'

const repository = join(import.meta.dirname, '..')
const binaries = join(repository, 'node_modules/.bin')

interface Manifest {
  readonly name: string
  readonly bin?: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, unknown>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const faults: string[] = []

/** Runs a command; what it prints is a fault when it fails. */
function demand(claim: string, cwd: string, command: readonly string[]): boolean {
  const [file = '', ...parameters] = command
  const { status, stdout, stderr } = spawnSync(file, parameters, { cwd, encoding: 'utf8' })
  if (status !== 0) faults.push(`${claim}: ${command.join(' ')}\n${stdout}${stderr}`)
  return status === 0
}

/** Packs a package and unpacks it where a consumer would have it; `undefined` when that fails. */
function install(folder: string, consumer: string): Manifest | undefined {
  const tarball = join(consumer, `${folder}.tgz`)
  const home = join(repository, 'packages', folder)
  if (!demand(`${folder} packs`, home, [...pnpm, 'pack', '--out', tarball])) return undefined
  demand(`${folder} pleases publint`, home, [join(binaries, 'publint'), 'run', tarball, '--strict'])
  demand(`${folder} pleases attw`, home, [join(binaries, 'attw'), tarball, '--profile', 'esm-only'])
  const place = join(consumer, 'node_modules/@tallystick', folder)
  mkdirSync(place, { recursive: true })
  if (!demand(`${folder} unpacks`, place, ['tar', '-xzf', tarball, '--strip-components=1'])) return undefined
  const manifest = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')) as Manifest
  // Only what the manifest promises: a dependency for development must not be needed here.
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) {
    if (name.startsWith('@tallystick/')) continue
    const link = join(place, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(realpathSync(join(home, 'node_modules', name)), link)
  }
  return manifest
}

/** Imports every entry of a package, and starts every command. */
function load({ name, exports, bin }: Manifest, consumer: string): number {
  const entries = Object.keys(exports).filter((entry) => !entry.endsWith('.json'))
  for (const entry of entries) {
    const specifier = name + entry.slice(1)
    demand(`${specifier} loads`, consumer, ['node', '--input-type=module', '-e', `import '${specifier}'`])
  }
  const commands = Object.entries(bin ?? {})
  for (const [command, path] of commands) {
    demand(`${command} starts`, consumer, ['node', join(consumer, 'node_modules', name, path), '--help'])
  }
  return entries.length + commands.length
}

/** A program that fails unless a stack of core, in whatever file it is published, names the source. */
const traceProgram = `
  import { defineAgent } from '@tallystick/core'
  try {
    defineAgent({})
  } catch ({ stack }) {
    if (!/core\\/src\\/runtime\\/\\S+\\.ts:\\d+/.test(stack)) throw new Error('No source is named: ' + stack)
  }
`

/** A program that fails unless core loads little of RxJS, and of the RxJS that its users import. */
const rxjsProgram = `
  import { createRequire } from 'node:module'
  import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
  const loaded = Object.keys(createRequire(import.meta.url).cache)
  if (loaded.some((path) => path.endsWith('/rxjs/dist/cjs/index.js'))) throw new Error('All of RxJS was loaded.')
  const { Observable, EMPTY } = await import('rxjs')
  const model = { provider: 'none', api: 'none', modelId: 'none', stream: () => EMPTY }
  const agent = defineAgent({ name: 'silent', instructions: 'Say nothing.', model })
  const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Hello?')
  for (const stream of [run.events$, run.state$, run.text$]) {
    if (!(stream instanceof Observable)) throw new Error('A stream is no Observable of RxJS.')
  }
  await run.result
`

const consumer = mkdtempSync(join(realpathSync(tmpdir()), 'tallystick-packages-'))
try {
  const manifests = readdirSync(join(repository, 'packages')).flatMap(
    (folder) => install(folder, consumer) ?? [],
  )
  const loaded = manifests.reduce((sum, manifest) => sum + load(manifest, consumer), 0)
  const node = ['node', '--enable-source-maps', '--input-type=module', '-e', traceProgram]
  demand('stack traces name sources', consumer, node)
  const rxjs = realpathSync(join(repository, 'packages/core/node_modules/rxjs'))
  symlinkSync(rxjs, join(consumer, 'node_modules/rxjs'))
  const program = ['node', '--input-type=module', '-e', rxjsProgram]
  demand('streams are those of RxJS, of which little is loaded', consumer, program)
  for (const fault of faults) console.log(fault)
  console.log(
    `packages: ${manifests.length} packed, ${loaded} entries and commands loaded, ${faults.length} faults`,
  )
  process.exitCode = faults.length > 0 ? 1 : 0
} finally {
  rmSync(consumer, { recursive: true, force: true })
}
