import type { FileHandle } from 'node:fs/promises'

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
  /** Opens a folder in a folder. Rejects where the name is a link, or no folder. */
  enter(folder: Folder, name: string): Promise<Folder>
  /** Opens a file for reading. Rejects with `NotAFileError` where the name is a link, a device, a pipe or a socket. */
  openFile(folder: Folder, name: string): Promise<FileHandle>
  /** Rejects with `OutsideError` where the file of a handle is not inside the root now. */
  assertInside(handle: FileHandle, folder: Folder, name: string): Promise<void>
}

/** A handle was opened whose file is not inside the root: another process changed a folder meanwhile. */
export class OutsideError extends Error {
  override readonly name: string = 'OutsideError'
}

/** What was to be opened as a file is something else. */
export class NotAFileError extends Error {
  override readonly name: string = 'NotAFileError'
}

/** Whether a path of the system is the root or below it. */
export function isInside(root: string, path: string, separator: string): boolean {
  return path === root || path.startsWith(root.endsWith(separator) ? root : root + separator)
}
