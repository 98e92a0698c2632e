import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pnpm } from '../../scripts/pnpm.ts'

const bench = join(import.meta.dirname, '..')
const repository = join(bench, '..')
/** Where everything is installed. The sources of the cases are copied there, so that they load what is installed. */
const work = join(bench, '.work')
/** What is installed there, and what runs there, with where it is in `bench`. */
const ofWorkspace = {
  'package.json': 'with-peers',
  'pnpm-workspace.yaml': 'with-peers',
  'pnpm-lock.yaml': 'with-peers',
  cases: '.',
  child: '.',
  subjects: '.',
}

/**
 * Packs every package of this repository as it would be published, installs the packages beside their peers, and returns the
 * folder that holds the cases.
 */
export function installWorkspace(say: (what: string) => void): string {
  mkdirSync(join(work, 'packed'), { recursive: true })
  for (const [name, folder] of Object.entries(ofWorkspace)) {
    rmSync(join(work, name), { recursive: true, force: true })
    cpSync(join(bench, folder, name), join(work, name), { recursive: true })
  }
  say('compiling')
  demand(repository, [process.execPath, join(repository, 'node_modules/typescript/bin/tsc'), '-b'])
  for (const folder of readdirSync(join(repository, 'packages'))) {
    say(`packing ${folder}`)
    unpack(folder)
  }
  say('installing Tallystick and its peers')
  try {
    demand(work, [...pnpm, 'install', '--frozen-lockfile'])
  } catch (error) {
    const advice = `Where a package of this repository or of bench/with-peers/package.json has other dependencies than the lockfile says: pnpm install --lockfile-only in ${work}, then copy pnpm-lock.yaml from there to bench/with-peers/.`
    throw new Error(`The packages cannot be installed.\n${(error as Error).message}\n${advice}`, {
      cause: error,
    })
  }
  return work
}

/** Unpacks a package as published; what it needs for development is left out, as for its users. */
function unpack(folder: string): void {
  const tarballs = mkdtempSync(join(tmpdir(), 'tallystick-bench-'))
  const place = join(work, 'packed', folder)
  try {
    const tarball = join(tarballs, 'package.tgz')
    demand(join(repository, 'packages', folder), [...pnpm, 'pack', '--out', tarball])
    // Its dependencies are linked in node_modules, and stay.
    for (const name of ['dist', 'lib']) rmSync(join(place, name), { recursive: true, force: true })
    mkdirSync(place, { recursive: true })
    demand(place, ['tar', '-xzf', tarball, '--strip-components=1'])
    const path = join(place, 'package.json')
    const {
      devDependencies: _,
      scripts: __,
      ...manifest
    } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
    writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`)
  } finally {
    rmSync(tarballs, { recursive: true, force: true })
  }
}

function demand(cwd: string, [file = '', ...parameters]: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(file, parameters, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${[file, ...parameters].join(' ')}\n${stdout}${stderr}`)
}
