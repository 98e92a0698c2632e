import { createHash, randomBytes } from 'node:crypto'
import { constants, renameSync, type Stats } from 'node:fs'
import { type FileHandle, open, readdir, unlink } from 'node:fs/promises'
import type { ToolContext } from '../../../execution/executor.ts'
import { ToolError } from '../../../execution/tool-error.ts'
import { temporaryName } from '../names/shown-names.ts'
import type { Folder, FolderAccess } from '../root/folder.ts'

/** A file that is not there yet; a link in its place is refused as well. */
const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL

/** A text for an entry of a folder. */
export interface NewText {
  readonly folder: Folder
  readonly name: string
  readonly text: string
  /** The file that it replaces: its owner and permissions are kept. */
  readonly replaced?: Stats | undefined
  /** The call that writes it. */
  readonly call: Pick<ToolContext, 'idempotencyKey' | 'attempt'>
}

/**
 * Puts a text into a file at once: it is written to a file beside it, which then takes the name. A reader finds the text
 * before or the text after, never a part, also after a crash; and the file that had the name, of which there may be hard
 * links elsewhere, is not written to. `check` is called last: nothing else of this process happens
 * between it and the change of the name.
 */
export async function putFile(
  access: FolderAccess,
  { folder, name, text, replaced, call }: NewText,
  check: () => void,
): Promise<void> {
  if (call.attempt > 1) {
    for (const left of await leftBy(folder, call.idempotencyKey)) await unlink(folder.at(left))
  }
  const temporary = `${startOf(call.idempotencyKey)}${randomBytes(12).toString('hex')}${temporaryName.end}`
  const file = await open(folder.at(temporary), newFile, 0o666)
  try {
    try {
      await access.assertInside(file, folder, temporary)
      if (replaced !== undefined) await keepOwnerAndMode(file, replaced)
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

async function keepOwnerAndMode(file: FileHandle, { uid, gid, mode }: Stats): Promise<void> {
  const made = await file.stat()
  if (made.uid !== uid || made.gid !== gid) {
    try {
      await file.chown(uid, gid)
    } catch (error) {
      throw new ToolError(
        `The file belongs to user ${uid} and group ${gid}, and this process may not give a file to them: writing it would change its owner. Nothing was changed.`,
        { cause: error },
      )
    }
  }
  // After the change of the owner, which takes the bits for running as another user away.
  await file.chmod(mode & 0o7777)
}

/** The names of files that a call has left in a folder: it ended before the text took its name. */
export async function leftBy(folder: Folder, idempotencyKey: string): Promise<readonly string[]> {
  const start = startOf(idempotencyKey)
  return (await readdir(folder.at('.'))).filter((name) => name.startsWith(start))
}

function startOf(idempotencyKey: string): string {
  const digest = createHash('sha256').update(idempotencyKey).digest('hex')
  return `${temporaryName.start}${digest.slice(0, 24)}-`
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
