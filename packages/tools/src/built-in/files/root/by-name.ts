import { constants } from 'node:fs'
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { type Folder, type FolderAccess, isInside, NotAFileError, OutsideError } from './folder.ts'

/**
 * Access on systems without `/proc/self/fd`. What a name led to is checked after it was opened: the name has to lead to
 * the file of the handle, inside the root and without links, before anything is read from it or written to it. Between a
 * check and the use of a name a process that swaps folders at that moment can have names outside the root listed, made or
 * moved.
 */
export function byName(root: string): FolderAccess {
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
