import { readCode } from '@tallystick/core/internal'
import { createHash, randomBytes } from 'node:crypto'
import { constants, renameSync, type Stats } from 'node:fs'
import { access, type FileHandle, link, open, opendir, readdir, rename, unlink } from 'node:fs/promises'
import { ToolError } from '../../define/outcome.ts'
import type { ToolContext } from '../../define/run-tool.ts'
import { splitPath, joinPath, quotePath, temporaryName } from './names.ts'
import { describeFault, type Folder, type FolderAccess, readStats, requireShown, withPlace } from './root.ts'
import { formatCount, type FolderRules, splitLines, requireFile } from './text.ts'

export interface WriteFileInput {
  readonly path: string
  readonly content: string
}

/** Creates a file or replaces all of it; folders that are missing on the way are made. */
export async function writeFile(
  rules: FolderRules,
  input: WriteFileInput,
  { signal, idempotencyKey, attempt }: ToolContext,
): Promise<string> {
  const { path: asked, content } = input
  const size = requireWritable(rules, asked, content)
  return await withPlace(rules.root, splitPath(asked), { toMake: true }, async (place) => {
    const { stats: replaced } = place
    const isNew = place.name !== undefined && replaced === undefined
    const { folder, name } = isNew ? { folder: place.folder, name: place.name } : requireFile(place)
    const call = { idempotencyKey, attempt }
    if (replaced !== undefined) await requireWritableFile(folder.at(name), replaced, asked)
    const text = { folder, name, text: content, replaced, call }
    await putFile(await rules.root.access(), text, () => signal.throwIfAborted())
    const done = replaced === undefined ? 'Created' : 'Replaced'
    const before = replaced === undefined ? '' : `; before ${formatCount(replaced.size, 'byte')}`
    return `${done} ${quotePath(joinPath(place.path))} (${formatCount(splitLines(content).length, 'line')}, ${formatCount(size, 'byte')}${before}).`
  })
}

/**
 * Throws `ToolError` for a file that is marked as read-only, or that this process may not write: the file that takes its name is a
 * new one, so the system would not refuse.
 */
export async function requireWritableFile(at: string, { mode }: Stats, path: string): Promise<void> {
  try {
    if ((mode & 0o222) !== 0) return await access(at, constants.W_OK)
  } catch {
    // Refused below, as one that is marked.
  }
  throw new ToolError(
    `${quotePath(path)} is read-only. Nothing was changed: ask the user to make it writable first.`,
  )
}

/** Bytes of a text that may be written. Throws `ToolError` for one that is too long, or that no file can hold. */
export function requireWritable({ maxFileBytes }: FolderRules, path: string, text: string): number {
  const size = Buffer.byteLength(text)
  if (size > maxFileBytes) {
    throw new ToolError(
      `The text for ${quotePath(path)} has ${formatCount(size, 'byte')}, and at most ${maxFileBytes} are written. Nothing was changed.`,
    )
  }
  if (!text.isWellFormed() || text.includes('\0')) {
    throw new ToolError(
      `The text for ${quotePath(path)} holds a NUL or half of a surrogate pair, which is not text in UTF-8. Nothing was changed.`,
    )
  }
  return size
}

export interface MoveFileInput {
  readonly from: string
  readonly to: string
}

/** Moves or renames a file or a folder. It replaces nothing; folders that are missing on the way are made. */
export async function moveFile(
  rules: FolderRules,
  input: MoveFileInput,
  { signal }: ToolContext,
): Promise<string> {
  const [fromParts, toParts] = [splitNamed(input.from), splitNamed(input.to)]
  return await withPlace(
    rules.root,
    fromParts.slice(0, -1),
    {},
    async ({ folder: source, name: notFolder, path }) => {
      const name = fromParts.at(-1) ?? ''
      if (notFolder !== undefined) throw new ToolError(`${quotePath(joinPath(path))} is not a folder.`)
      const from = [...source.path, name]
      const isFolder = await requireMovable(rules, source, name)
      return await withPlace(rules.root, toParts, { toMake: true }, async (to) => {
        const target = quotePath(joinPath(to.path))
        if (to.name === undefined || to.stats !== undefined) {
          throw new ToolError(`${target} exists already. Nothing was moved: name a path that is free.`)
        }
        if (isFolder) await assertNothingUncovered(rules, { folder: source, name }, to.path, signal)
        requireShown(rules.root, to.path, isFolder)
        signal.throwIfAborted()
        try {
          await moveEntry(source.at(name), to.folder.at(to.name), isFolder)
        } catch (error) {
          if (readCode(error) === 'EEXIST')
            throw new ToolError(`${target} exists already. Nothing was moved.`)
          throw describeFault(error, joinPath(from))
        }
        await Promise.all([writeSynced(source), writeSynced(to.folder)])
        return `Moved ${quotePath(joinPath(from))} to ${target}.`
      })
    },
  )
}

/** Returns true for a folder. Throws `ToolError` for what cannot be moved. */
async function requireMovable(rules: FolderRules, folder: Folder, name: string): Promise<boolean> {
  const path = [...folder.path, name]
  requireShown(rules.root, path, false)
  const stats = await readStats(folder.at(name))
  if (stats === undefined)
    throw new ToolError(`${quotePath(joinPath(path))} does not exist. Nothing was moved.`)
  requireShown(rules.root, path, stats.isDirectory())
  if (stats.isDirectory() || stats.isFile()) return stats.isDirectory()
  const what = stats.isSymbolicLink() ? 'a link' : 'not a regular file'
  throw new ToolError(`${quotePath(joinPath(path))} is ${what}, and only files and folders are moved.`)
}

/** A file gets its new name only where that is free, then loses the old one: a crash loses nothing. */
async function moveEntry(source: string, target: string, isFolder: boolean): Promise<void> {
  if (isFolder) return await rename(source, target)
  try {
    await link(source, target)
  } catch (error) {
    // File systems without hard links.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(readCode(error) ?? '')) throw error
    return await rename(source, target)
  }
  await unlink(source)
}

function splitNamed(path: string): readonly string[] {
  const parts = splitPath(path)
  const last = parts.at(-1)
  if (last !== undefined && last !== '..') return parts
  throw new ToolError(`The path ${quotePath(path)} ends with no name. Name the file or folder to move.`)
}

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
    for (const left of await findLeftBy(folder, call.idempotencyKey)) await unlink(folder.at(left))
  }
  const temporary = `${toNameStart(call.idempotencyKey)}${randomBytes(12).toString('hex')}${temporaryName.end}`
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
  await writeSynced(folder)
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
export async function findLeftBy(folder: Folder, idempotencyKey: string): Promise<readonly string[]> {
  const start = toNameStart(idempotencyKey)
  return (await readdir(folder.at('.'))).filter((name) => name.startsWith(start))
}

function toNameStart(idempotencyKey: string): string {
  const digest = createHash('sha256').update(idempotencyKey).digest('hex')
  return `${temporaryName.start}${digest.slice(0, 24)}-`
}

/** Makes the names of a folder durable, where the system can. */
async function writeSynced(folder: Folder): Promise<void> {
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

/**
 * Throws `ToolError` if a folder that is to be moved holds something that is ignored where it is, and would not be
 * where it goes: moving a folder must not be a way to read what it hides.
 */
export async function assertNothingUncovered(
  rules: FolderRules,
  { folder, name }: Pick<NewText, 'folder' | 'name'>,
  to: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const access = await rules.root.access()
  const from = [...folder.path, name]
  let visited = 0
  const look = async (parent: Folder, child: string): Promise<void> => {
    const inner = await access.enter(parent, child)
    try {
      for await (const entry of await opendir(inner.at('.'))) {
        signal.throwIfAborted()
        if (++visited > rules.maxVisited)
          throw new ToolError(
            `${quotePath(joinPath(from))} holds more than ${rules.maxVisited} entries, too many to move. Move folders within it.`,
          )
        const path = [...inner.path, entry.name]
        const isFolder = entry.isDirectory()
        const isShown = rules.root.shown.unshown(path, isFolder) === undefined
        if (isShown && isFolder) await look(inner, entry.name)
        if (isShown) continue
        if (rules.root.shown.unshown([...to, ...path.slice(from.length)], isFolder) !== undefined) continue
        throw new ToolError(
          `${quotePath(joinPath(from))} holds files that are ignored there and would not be at the new path. Nothing was moved.`,
        )
      }
    } finally {
      await inner.close()
    }
  }
  await look(folder, name)
}
