import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { demand, pnpm } from './command.ts'
import type { Operator } from './measure-all.ts'

/** Packs every package of a clone as it would be published, and returns the tarballs, by the folder of the package. */
export async function packPackages(
  repository: string,
  tarballs: string,
  { say, stop }: Operator,
): Promise<ReadonlyMap<string, string>> {
  const packed = new Map<string, string>()
  for (const folder of readdirSync(join(repository, 'packages'))) {
    say(`packing ${folder}`)
    const tarball = join(tarballs, `${folder}.tgz`)
    await demand(join(repository, 'packages', folder), [...pnpm, 'pack', '--out', tarball], stop)
    packed.set(folder, tarball)
  }
  return packed
}

/**
 * Unpacks a package as published, and removes everything else from its place but its linked dependencies. What it needs for
 * development is left out of its manifest, as for its users.
 */
export async function unpackPackage(tarball: string, place: string, { stop }: Operator): Promise<void> {
  mkdirSync(place, { recursive: true })
  for (const name of readdirSync(place)) {
    if (name !== 'node_modules') rmSync(join(place, name), { recursive: true })
  }
  await demand(place, ['tar', '-xzf', tarball, '--strip-components=1'], stop)
  const path = join(place, 'package.json')
  const {
    devDependencies: _,
    scripts: __,
    ...manifest
  } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`)
}
