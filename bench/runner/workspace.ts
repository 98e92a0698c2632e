import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { demand, pnpm } from './command.ts'
import type { Operator } from './measure-all.ts'
import { packPackages, unpackPackage } from './packages.ts'

const bench = join(import.meta.dirname, '..')
const repository = join(bench, '..')
/** Where everything is installed. */
const work = join(bench, '.work')
const manifests = ['package.json', 'pnpm-workspace.yaml', 'pnpm-lock.yaml']

/**
 * Copies the sources of the cases and subjects to a folder, in the place of those that are there: they load the packages that
 * are installed in that folder.
 */
export function copyCases(home: string): void {
  for (const name of ['cases', 'child', 'subjects']) {
    rmSync(join(home, name), { recursive: true, force: true })
    cpSync(join(bench, name), join(home, name), { recursive: true })
  }
}

/**
 * Packs every package of this repository as it would be published, installs the packages beside their peers, and returns the
 * folder that holds the cases.
 */
export async function installWorkspace(operator: Operator): Promise<string> {
  const { say, stop } = operator
  mkdirSync(join(work, 'packed'), { recursive: true })
  for (const name of manifests) cpSync(join(bench, 'with-peers', name), join(work, name))
  copyCases(work)
  say('compiling')
  const compiler = join(repository, 'node_modules/typescript/bin/tsc')
  await demand(repository, [process.execPath, compiler, '-b'], stop)
  const tarballs = mkdtempSync(join(tmpdir(), 'tallystick-bench-'))
  try {
    for (const [folder, tarball] of await packPackages(repository, tarballs, operator)) {
      await unpackPackage(tarball, join(work, 'packed', folder), operator)
    }
  } finally {
    rmSync(tarballs, { recursive: true, force: true })
  }
  say('installing Tallystick and its peers')
  try {
    await demand(work, [...pnpm, 'install', '--frozen-lockfile'], stop)
  } catch (error) {
    stop.throwIfAborted()
    const advice = `Where a package of this repository or of bench/with-peers/package.json has other dependencies than the lockfile says: pnpm install --lockfile-only in ${work}, then copy pnpm-lock.yaml from there to bench/with-peers/.`
    throw new Error(`The packages cannot be installed.\n${(error as Error).message}\n${advice}`, {
      cause: error,
    })
  }
  return work
}
