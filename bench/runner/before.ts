import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  existsSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { demand, pnpm } from './command.ts'
import { UsageError } from './options.ts'
import type { Operator } from './measure-all.ts'
import { packPackages, unpackPackage } from './packages.ts'
import { copyCases } from './workspace.ts'

const bench = join(import.meta.dirname, '..')
const repository = join(bench, '..')

/** A commit that cannot be measured; the message says why. */
export class BeforeError extends Error {}

/** The commit that a ref names, in full. Throws `UsageError` where it names none. */
export async function findCommit(ref: string): Promise<string> {
  try {
    return (await git('rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`)).trim()
  } catch {
    throw new UsageError(
      `This clone has no commit ${ref}. Fetch it first: git fetch, or git fetch --unshallow where the clone is shallow.`,
    )
  }
}

/** Tells a commit: its id, its date and the first line of its message. */
export async function commitText(commit: string): Promise<string> {
  return (await git('log', '-1', '--date=short', '--format=%h, %ad: %s', commit)).trim()
}

/** Tells the commit of this clone, and whether files differ from it. */
export async function todayText(): Promise<string> {
  const changed = await git('status', '--porcelain')
  return `${await commitText('HEAD')}${changed === '' ? '' : ' (and changes that are not committed)'}`
}

/** How a commit is installed. */
interface Installing {
  /** Whether its packages are packed, or measured from their sources. */
  readonly isPacked: boolean
  readonly operator: Operator
  /** Removes what was checked out. */
  readonly cleanUp: AsyncDisposableStack
}

/**
 * Checks a commit out in a temporary folder, and installs it with its own lockfile; where packed packages are measured, has it
 * compile and pack its packages, and unpacks them in the place of their sources. Returns the folder that holds the cases of
 * today, which load these packages.
 */
export async function installBefore(commit: string, installing: Installing): Promise<string> {
  const { isPacked, operator, cleanUp } = installing
  const { say, stop } = operator
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-before-'))
  const clone = join(folder, 'clone')
  let isCheckedOut = false
  cleanUp.defer(async () => {
    // A command that was stopped may leave a process that writes for a moment more.
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    if (isCheckedOut) await git('worktree', 'remove', '--force', clone)
  })
  const name = commit.slice(0, 8)
  const step = async (fault: string, command: readonly string[]): Promise<void> => {
    try {
      await demand(clone, command, stop)
    } catch (error) {
      stop.throwIfAborted()
      const message = `${fault}, so it cannot be measured.\n${(error as Error).message}`
      throw new BeforeError(message, { cause: error })
    }
  }
  say(`checking out ${name}`)
  await git('worktree', 'add', '--detach', clone, commit)
  isCheckedOut = true
  say(`installing ${name}`)
  const install = [...pnpm, 'install', '--frozen-lockfile', '--prefer-offline']
  await step(`The dependencies of ${name} cannot be installed with its own lockfile`, install)
  if (isPacked) {
    say(`compiling ${name}`)
    await step(`The packages of ${name} do not compile`, [...pnpm, 'run', 'build'])
    for (const [place, tarball] of await packPackages(clone, folder, operator)) {
      await unpackPackage(tarball, join(clone, 'packages', place), operator)
    }
  }
  return homeIn(clone)
}

/** Makes the folder that holds the cases of today, with the packages of the clone and what the cases need beside them. */
function homeIn(clone: string): string {
  const home = join(clone, 'cases-of-today')
  mkdirSync(home)
  copyCases(home)
  const manifest = readFileSync(join(bench, 'package.json'), 'utf8')
  writeFileSync(join(home, 'package.json'), manifest)
  const { dependencies } = JSON.parse(manifest) as { readonly dependencies: Readonly<Record<string, string>> }
  const packages = readdirSync(join(clone, 'packages')).map((folder) => join(clone, 'packages', folder))
  for (const name of Object.keys(dependencies)) {
    const places = name.startsWith('@tallystick/')
      ? packages.filter((place) => place.endsWith(`/${name.slice('@tallystick/'.length)}`))
      : packages.map((place) => join(place, 'node_modules', name))
    const place = places.find((each) => existsSync(each))
    // A case that needs it is left out.
    if (place === undefined) continue
    const link = join(home, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(place, link)
  }
  return home
}

function git(...parameters: readonly string[]): Promise<string> {
  return demand(repository, ['git', ...parameters])
}
