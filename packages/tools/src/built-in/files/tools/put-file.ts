import { randomBytes } from 'node:crypto'
import { constants, renameSync } from 'node:fs'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { temporaryName } from '../names/shown-names.ts'
import type { Folder, FolderAccess } from '../root/folder.ts'

const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0)

/** A text for an entry of a folder. */
export interface NewText {
  readonly folder: Folder
  readonly name: string
  readonly text: string
  /** The permissions of the file that it replaces. */
  readonly mode?: number | undefined
}

/**
 * Puts a text into a file at once: it is written to a file beside it, which then takes the name. A reader finds the text
 * before or the text after, never a part, also after a crash; and the file that had the name, of which there may be hard
 * links elsewhere, is not written to. `check` is called last: nothing else of this process happens
 * between it and the change of the name.
 */
export async function putFile(
  access: FolderAccess,
  { folder, name, text, mode }: NewText,
  check: () => void,
): Promise<void> {
  const temporary = `${temporaryName.start}${randomBytes(12).toString('hex')}${temporaryName.end}`
  const file = await open(folder.at(temporary), newFile, 0o666)
  try {
    try {
      await access.assertInside(file, folder, temporary)
      if (mode !== undefined) await file.chmod(mode & 0o777)
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    check()
    renameSync(folder.at(temporary), folder.at(name))
  } catch (error) {
    await unlink(folder.at(temporary)).catch(() => {})
    throw error
  }
  await synced(folder)
}

/** Makes the names of a folder durable, where the system can. */
export async function synced(folder: Folder): Promise<void> {
  let handle: FileHandle | undefined
  try {
    handle = await open(folder.at('.'), constants.O_RDONLY)
    await handle.sync()
  } catch {
    // Windows syncs no folders, and some file systems do not either.
  } finally {
    await handle?.close()
  }
}
