import { constants, fstatSync, readlinkSync } from 'node:fs'
import { type FileHandle, open, readlink, stat } from 'node:fs/promises'
import { type Folder, type FolderAccess, isInside, NotAFileError, OutsideError } from './folder.ts'

/** `O_PATH` of Linux, which Node does not name: a handle of the entry that opens nothing, not even a pipe or a device. */
const handleOnly = 0o10000000
const noLink = handleOnly | constants.O_NOFOLLOW

/**
 * Access on Linux. Every name is looked up in a folder that is held open, through `/proc/self/fd`: whatever becomes of the
 * names above meanwhile, no lookup passes through them, and no link is followed.
 */
export function byHandle(root: string): FolderAccess {
  // What the system knows of an open handle needs no disk: asking at once takes a tenth of the time.
  const requireInside = (handle: FileHandle): void => {
    if (!isInside(root, readlinkSync(pathOf(handle)), '/')) throw new OutsideError()
  }
  const opened = async (path: string, at: readonly string[]): Promise<Folder> => {
    const handle = await open(path, noLink | constants.O_DIRECTORY)
    return await orClosed(handle, async () => {
      requireInside(handle)
      return {
        path: at,
        at: (name) => `${pathOf(handle)}/${name}`,
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
        const file = await open(pathOf(entry), constants.O_RDONLY)
        return await orClosed(file, async () => {
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

/** Whether this system has what `byHandle` needs. */
export async function hasHandlePaths(root: string): Promise<boolean> {
  if (process.platform !== 'linux') return false
  try {
    const handle = await open(root, noLink | constants.O_DIRECTORY)
    try {
      const [held, named] = [await handle.stat(), await stat(`${pathOf(handle)}/.`)]
      return held.ino === named.ino && held.dev === named.dev && (await readlink(pathOf(handle))) === root
    } finally {
      await handle.close()
    }
  } catch {
    return false
  }
}

function pathOf(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`
}

async function orClosed<Result>(handle: FileHandle, use: () => Promise<Result>): Promise<Result> {
  try {
    return await use()
  } catch (error) {
    await handle.close()
    throw error
  }
}
