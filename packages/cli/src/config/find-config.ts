import { existsSync, lstatSync, realpathSync, statSync, type Stats } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ConfigurationError } from '@tallystick/core'

const fileNames = ['tallystick.config.ts', 'tallystick.config.js', 'tallystick.config.mjs']

/** Where a configuration is looked for. */
export interface WantedConfig {
  readonly workingDirectory: string
  /** A file given by name; otherwise the nearest one up to the root of the repository or package. */
  readonly file?: string
}

/**
 * Returns the path of the configuration. A file that is found, and not named, has to belong to the user, and no other
 * user may be able to write it, since loading it runs its code. Throws a `ConfigurationError` that says what is wrong.
 */
export function configPath({ workingDirectory, file }: WantedConfig): string {
  const root = searchRoot(workingDirectory)
  const path = file === undefined ? nearestConfig(workingDirectory, root) : resolve(workingDirectory, file)
  if (path === undefined || !existsSync(path)) {
    const where =
      root === workingDirectory
        ? `not in ${workingDirectory}`
        : `neither in ${workingDirectory} nor above it up to ${root}`
    throw new ConfigurationError(
      `No configuration was found: ${path ?? `${fileNames[0]} is ${where}`}. ` +
        'It names the agents that drive a run. Write one that exports defineConfig({ agents }), or name it with --config FILE.',
    )
  }
  if (file === undefined) requireOwn(path)
  return path
}

/**
 * The folder above which no configuration is looked for: the root of the Git repository, else the nearest folder with a
 * package.json, else the working directory itself.
 */
function searchRoot(workingDirectory: string): string {
  const folders = foldersUpwards(workingDirectory)
  const holding = (name: string): string | undefined =>
    folders.find((folder) => existsSync(resolve(folder, name)))
  return holding('.git') ?? holding('package.json') ?? workingDirectory
}

function nearestConfig(from: string, root: string): string | undefined {
  const folders = foldersUpwards(from)
  return folders
    .slice(0, folders.indexOf(root) + 1)
    .flatMap((folder) => fileNames.map((name) => resolve(folder, name)))
    .find((path) => existsSync(path))
}

function foldersUpwards(from: string): readonly string[] {
  const above = dirname(from)
  return above === from ? [from] : [from, ...foldersUpwards(above)]
}

/** Who runs this process. Absent where the system has no such ids. */
export interface ProcessUser {
  readonly userId: number
  /** The group of the user. */
  readonly groupId: number
}

function processUser(): ProcessUser | undefined {
  const [userId, groupId] = [process.getuid?.(), process.getgid?.()]
  return userId === undefined || groupId === undefined ? undefined : { userId, groupId }
}

function requireOwn(path: string): void {
  const user = processUser()
  if (user === undefined) return
  // The owner of a folder decides where a link in it leads.
  const real = realpathSync(path)
  for (const each of new Set([path, real])) {
    for (const [place, stats] of [
      [each, each === real ? statSync(each) : lstatSync(each)],
      [dirname(each), statSync(dirname(each))],
    ] as const) {
      const fault = accessFault(stats, user)
      if (fault === undefined) continue
      throw new ConfigurationError(
        `${path} was not loaded, since ${place} ${fault}, and loading it would run their code as you. ` +
          `If you trust it, name it with --config ${path}; else run the command in a folder of your own.`,
      )
    }
  }
}

const groupWrites = 0o020
const othersWrite = 0o002
const isSticky = 0o1000

/**
 * Returns why a user other than this one and root can change a file or a folder; `undefined` if no other user can. A
 * group with the user's own number is the user's alone, as most systems make it.
 */
export function accessFault(
  stats: Pick<Stats, 'uid' | 'gid' | 'mode' | 'isSymbolicLink' | 'isDirectory'>,
  { userId, groupId }: ProcessUser,
): string | undefined {
  if (stats.uid !== userId && stats.uid !== 0) return `belongs to another user (id ${stats.uid})`
  // The mode of a link says nothing; in a sticky folder no user replaces the files of others.
  if (stats.isSymbolicLink() || (stats.isDirectory() && (stats.mode & isSticky) !== 0)) return undefined
  if ((stats.mode & othersWrite) !== 0) return 'can be written by every user'
  const isOwnGroup = stats.gid === 0 || (stats.gid === groupId && groupId === userId)
  return (stats.mode & groupWrites) !== 0 && !isOwnGroup
    ? `can be written by its group (id ${stats.gid})`
    : undefined
}
