import { constants, fstatSync, readlinkSync, realpathSync, type Stats, statSync } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, opendir, readlink, realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { findNearestNames, readCode } from '@tallystick/core/internal'
import { ToolError } from '../../define/outcome.ts'
import { isUsableName, joinPath, quotePath, type ShownNames } from './names.ts'

/** The folder that a family of tools is limited to. */
export interface Root {
  /** Its path, links resolved. */
  readonly real: string
  readonly shown: ShownNames
  access(): Promise<FolderAccess>
}

/** Resolves the folder once. Throws `ConfigurationError` if there is no such folder. */
export function openRoot(tool: string, folder: string, shown: ShownNames, access?: 'by name'): Root {
  const fault = (why: string, cause?: unknown): ConfigurationError =>
    new ConfigurationError(`${tool}: root is ${JSON.stringify(folder)}, which ${why}.`, { cause })
  let real: string
  try {
    real = realpathSync.native(folder)
  } catch (error) {
    throw fault('cannot be found. Give a folder that exists', error)
  }
  if (!statSync(real).isDirectory()) throw fault('is not a folder. Give a folder')
  let found: Promise<FolderAccess> | undefined
  const find = async (): Promise<FolderAccess> =>
    access === undefined && (await hasHandlePaths(real)) ? openByHandle(real) : openByName(real)
  return { real, shown, access: () => (found ??= find()) }
}

/** A folder inside the root that a call holds. Close it. */
export interface Folder {
  /** Its names from the root down, links resolved. */
  readonly path: readonly string[]
  /** The path by which the system finds an entry of this very folder; `.` is the folder. */
  at(name: string): string
  close(): Promise<void>
}

/** How folders and files of one root are opened, so that none outside is. Rejects with the system's errors. */
export interface FolderAccess {
  /** The path of the root, links resolved. */
  readonly root: string
  openRoot(): Promise<Folder>
  /** Opens a folder in a folder. Rejects if the name is a link, or no folder. */
  enter(folder: Folder, name: string): Promise<Folder>
  /** Opens a file for reading. Rejects with `NotAFileError` if the name is a link, a device, a pipe or a socket. */
  openFile(folder: Folder, name: string): Promise<FileHandle>
  /** Rejects with `OutsideError` if the file of a handle is not inside the root now. */
  assertInside(handle: FileHandle, folder: Folder, name: string): Promise<void>
}

/** A handle was opened whose file is not inside the root: another process changed a folder. */
export class OutsideError extends Error {
  override readonly name: string = 'OutsideError'
}

export class NotAFileError extends Error {
  override readonly name: string = 'NotAFileError'
}

function isInside(root: string, path: string, separator: string): boolean {
  return path === root || path.startsWith(root.endsWith(separator) ? root : root + separator)
}

/** `O_PATH` of Linux, which Node does not name: a handle of the entry that opens nothing, not even a pipe or a device. */
const handleOnly = 0o10000000
const noLink = handleOnly | constants.O_NOFOLLOW

/**
 * Access on Linux. Every name is looked up in a folder that is held open, through `/proc/self/fd`: whatever becomes of the
 * names above, no lookup passes through them, and no link is followed.
 */
export function openByHandle(root: string): FolderAccess {
  // The system knows the path of an open handle without the disk: a synchronous read takes a tenth of the time.
  const requireInside = (handle: FileHandle): void => {
    if (!isInside(root, readlinkSync(toHandlePath(handle)), '/')) throw new OutsideError()
  }
  const opened = async (path: string, at: readonly string[]): Promise<Folder> => {
    const handle = await open(path, noLink | constants.O_DIRECTORY)
    return await closeOnError(handle, async () => {
      requireInside(handle)
      return {
        path: at,
        at: (name) => `${toHandlePath(handle)}/${name}`,
        close: () => handle.close(),
      }
    })
  }
  return {
    root,
    openRoot: () => opened(root, []),
    enter: (folder, name) => opened(folder.at(name), [...folder.path, name]),
    async openFile(folder, name) {
      const entry = await open(folder.at(name), noLink)
      try {
        if (!fstatSync(entry.fd).isFile()) throw new NotAFileError()
        // The very file that was looked at, whatever has its name now.
        const file = await open(toHandlePath(entry), constants.O_RDONLY)
        return await closeOnError(file, async () => {
          requireInside(file)
          return file
        })
      } finally {
        await entry.close()
      }
    },
    assertInside: async (handle) => requireInside(handle),
  }
}

/** True if this system has the `/proc` paths that `openByHandle` needs. */
async function hasHandlePaths(root: string): Promise<boolean> {
  if (process.platform !== 'linux') return false
  try {
    const handle = await open(root, noLink | constants.O_DIRECTORY)
    try {
      const [held, named] = [await handle.stat(), await stat(`${toHandlePath(handle)}/.`)]
      return (
        held.ino === named.ino && held.dev === named.dev && (await readlink(toHandlePath(handle))) === root
      )
    } finally {
      await handle.close()
    }
  } catch {
    return false
  }
}

function toHandlePath(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`
}

async function closeOnError<Result>(handle: FileHandle, use: () => Promise<Result>): Promise<Result> {
  try {
    return await use()
  } catch (error) {
    await handle.close()
    throw error
  }
}

/**
 * Access on systems without `/proc/self/fd`. What a name led to is checked after it was opened: the name has to lead to
 * the file of the handle, inside the root and without links, before anything is read from it or written to it. Between a
 * check and the use of a name a process that swaps folders at that moment can have names outside the root listed, made or
 * moved.
 */
export function openByName(root: string): FolderAccess {
  const folderAt = (path: readonly string[]): Folder => ({
    path,
    at: (name) => join(root, ...path, name),
    close: () => Promise.resolve(),
  })
  const opened = async (path: readonly string[]): Promise<Folder> => {
    const name = join(root, ...path)
    const stats = await lstat(name)
    if (!stats.isDirectory()) throw new NotAFileError()
    if (!isInside(root, await realpath(name), sep)) throw new OutsideError()
    return folderAt(path)
  }
  const assertInside = async (handle: FileHandle, folder: Folder, name: string): Promise<void> => {
    const found = await realpath(folder.at(name))
    const [held, named] = [await handle.stat({ bigint: true }), await lstat(found, { bigint: true })]
    const isSame = held.ino === named.ino && held.dev === named.dev
    if (!isSame || !isInside(root, found, sep)) throw new OutsideError()
  }
  return {
    root,
    openRoot: () => opened([]),
    enter: (folder, name) => opened([...folder.path, name]),
    async openFile(folder, name) {
      if (!(await lstat(folder.at(name))).isFile()) throw new NotAFileError()
      // A pipe that has taken the place of the file must not keep the call waiting. Windows has neither flag, and takes none.
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
      const file = await open(folder.at(name), flags)
      try {
        if (!(await file.stat()).isFile()) throw new NotAFileError()
        await assertInside(file, folder, name)
        return file
      } catch (error) {
        await file.close()
        throw error
      }
    },
    assertInside,
  }
}

const meanings: Readonly<Record<string, string>> = {
  EACCES: 'cannot be used: the permission is missing',
  EPERM: 'cannot be used: the permission is missing',
  EROFS: 'cannot be changed: its file system is read-only',
  ENOSPC: 'cannot be written: the disk is full',
  EDQUOT: 'cannot be written: the quota of the disk is used up',
  ENAMETOOLONG: 'has a name that is too long',
  EINVAL: 'cannot be used: the system refuses this name or this change',
  EXDEV: 'cannot be moved there: the other folder is on another file system. Write it anew instead',
  EMFILE: 'cannot be opened now: too many files are open. Try again',
  ENFILE: 'cannot be opened now: too many files are open. Try again',
  EIO: 'cannot be read: the disk reports a fault',
  EISDIR: 'is a folder',
  ENOTDIR: 'is not a folder',
  ENOENT: 'does not exist any more: it was changed during the call. Look again',
  EEXIST: 'was made by another process during the call. Look again',
  ELOOP: 'was replaced by a link during the call. Look again',
  EBUSY: 'is in use',
  ENOTEMPTY: 'exists already',
}

/**
 * An error of the system in words that a model can act on, without the paths of this machine. Anything else that was
 * thrown is returned as it is.
 */
export function describeFault(error: unknown, path: string): unknown {
  if (error instanceof ToolError) return error
  if (error instanceof OutsideError) {
    return new ToolError(
      `${quotePath(path)} leads outside the root folder: a folder on its way was changed during the call.`,
    )
  }
  if (error instanceof NotAFileError) {
    return new ToolError(
      `${quotePath(path)} is not a regular file: it was changed during the call. Look again.`,
    )
  }
  const code = readCode(error)
  if (code === undefined) return error
  return new ToolError(`${quotePath(path)} ${meanings[code] ?? `cannot be used (${code})`}.`)
}

/** Where a path leads: a folder, or an entry of a folder. The folder is open until the call has used it. */
export interface Place {
  /** The folder itself, or the folder that the entry is in. */
  readonly folder: Folder
  /** The name of the entry; `undefined` for a folder. */
  readonly name?: string
  /** The names from the root down, links resolved. */
  readonly path: readonly string[]
  /** `undefined` if nothing is there yet. */
  readonly stats?: Stats
}

const maxLinks = 40
const maxSteps = 2_000

/**
 * Looks a path up and calls `use` with where it leads: never outside the root, and never to what is hidden or ignored.
 * Links are followed name by name, each in the folder that it is in. Rejects with a `ToolError` that says what is wrong
 * with the path, and where.
 */
export async function withPlace<Result>(
  root: Root,
  parts: readonly string[],
  /** With `toMake`, a file that does not exist yet is a place, and so are folders above it, which are made. */
  { toMake = false }: { readonly toMake?: boolean },
  use: (place: Place) => Promise<Result>,
): Promise<Result> {
  const asked = quotePath(joinPath(parts))
  const outside = (): ToolError =>
    new ToolError(`${asked} leads outside the root folder. Only what is inside it can be used.`)
  const access = await root.access()
  /** The folder that the look-up has reached. */
  let reached: Folder | undefined
  const close = async (): Promise<void> => {
    await reached?.close()
    reached = undefined
  }

  const find = async (): Promise<Place> => {
    let left = parts
    let links = 0
    for (let steps = 0; steps < maxSteps; steps++) {
      const folder = (reached ??= await access.openRoot())
      const [name, ...rest] = left
      if (name === undefined) return { folder, path: folder.path, stats: await lstat(folder.at('.')) }
      if (name === '..') {
        if (folder.path.length === 0) throw outside()
        left = [...folder.path.slice(0, -1), ...rest]
        await close()
        continue
      }
      const path = [...folder.path, name]
      requireShown(root, path, false)
      const stats = await readStats(folder.at(name))
      if (stats === undefined) {
        if (!toMake || rest.includes('..')) throw await describeMissing(root, folder, name)
        if (rest.length === 0) return { folder, name, path }
        requireShown(root, path, true)
        await mkdir(folder.at(name)).catch((error: unknown) => {
          // Another call made it, or something else, which the next look finds.
          if (readCode(error) !== 'EEXIST') throw error
        })
      } else if (stats.isSymbolicLink()) {
        if (++links > maxLinks) throw new ToolError(`${asked} passes through too many links.`)
        const target = await readlink(folder.at(name))
        if (!isAbsolute(target)) {
          left = [...splitNames(target), ...rest]
          continue
        }
        const [top, end] = await Promise.all([realpath(access.root), realpath(target).catch(() => target)])
        const inside = relative(top, end)
        if (inside.split(sep).includes('..') || isAbsolute(inside)) throw outside()
        left = [...splitNames(inside), ...rest]
        await close()
      } else if (stats.isDirectory()) {
        requireShown(root, path, true)
        reached = await access.enter(folder, name)
        await folder.close()
        left = rest
      } else if (rest.length === 0) return { folder, name, path, stats }
      else throw new ToolError(`${quotePath(joinPath(path))} is not a folder, so ${asked} does not exist.`)
    }
    throw new ToolError(`${asked} has too many names on its way.`)
  }

  try {
    return await use(await find())
  } catch (error) {
    throw describeFault(error, joinPath(parts))
  } finally {
    await close()
  }
}

/** The names that a link of the system consists of. */
function splitNames(text: string): readonly string[] {
  return text.split(sep === '/' ? '/' : /[/\\]/).filter((part) => part !== '' && part !== '.')
}

async function describeMissing({ shown }: Root, folder: Folder, name: string): Promise<ToolError> {
  const names: string[] = []
  for await (const entry of await opendir(folder.at('.'))) {
    const isShown = shown.unshown([...folder.path, entry.name], entry.isDirectory()) === undefined
    if (isShown && isUsableName(entry.name)) names.push(entry.name)
    if (names.length >= maxSteps) break
  }
  const near = findNearestNames(name, names.sort(), 3).map((each) =>
    quotePath(joinPath([...folder.path, each])),
  )
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`
  return new ToolError(`${quotePath(joinPath([...folder.path, name]))} does not exist.${hint}`)
}

/** Throws `ToolError` for a path that is not shown. */
export function requireShown({ shown }: Root, path: readonly string[], isFolder: boolean): void {
  const why = shown.unshown(path, isFolder)
  if (why === undefined) return
  throw new ToolError(`${quotePath(joinPath(path))} is ${why}: this tool neither shows nor changes it.`)
}

/** Does not follow links; `undefined` if nothing has the name. */
export async function readStats(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if (readCode(error) === 'ENOENT') return undefined
    throw error
  }
}
