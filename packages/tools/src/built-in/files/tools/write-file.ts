import { constants, type Stats } from 'node:fs'
import { access } from 'node:fs/promises'
import type { ToolContext } from '../../../execution/executor.ts'
import { ToolError } from '../../../execution/tool-error.ts'
import { partsOf, pathText, quoted } from '../names/asked-path.ts'
import { type Place, withPlace } from '../root/place.ts'
import { amount, bytesOf } from '../text/amounts.ts'
import { linesOf } from '../text/text-file.ts'
import { type FolderRules, requireFile } from './folder-rules.ts'
import { putFile } from './put-file.ts'

/** What `write_file` is asked for. */
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
  return await withPlace(rules.root, partsOf(asked), { toMake: true }, async (place) => {
    const { folder, name } = fileToWrite(place)
    const call = { idempotencyKey, attempt }
    if (place.stats !== undefined) await requireWritableFile(folder.at(name), place.stats, asked)
    const text = { folder, name, text: content, replaced: place.stats, call }
    await putFile(await rules.root.access(), text, () => signal.throwIfAborted())
    const done = place.stats === undefined ? 'Created' : 'Replaced'
    const before = place.stats === undefined ? '' : `; before ${amount(place.stats.size, 'byte')}`
    return `${done} ${quoted(pathText(place.path))} (${amount(linesOf(content).length, 'line')}, ${amount(size, 'byte')}${before}).`
  })
}

/**
 * Throws `ToolError` for a file that is marked as read-only, or that this process may not write: the file that takes its name is a
 * new one, so the system would not refuse.
 */
export async function requireWritableFile(at: string, { mode }: Stats, path: string): Promise<void> {
  const isMarked = (mode & 0o222) === 0
  const mayWrite =
    !isMarked &&
    (await access(at, constants.W_OK).then(
      () => true,
      () => false,
    ))
  if (mayWrite) return
  throw new ToolError(
    `${quoted(path)} is read-only. Nothing was changed: ask the user to make it writable first.`,
  )
}

/** Bytes of a text that may be written. Throws `ToolError` for one that is too long, or that no file can hold. */
export function requireWritable({ maxFileBytes }: FolderRules, path: string, text: string): number {
  const size = bytesOf(text)
  if (size > maxFileBytes) {
    throw new ToolError(
      `The text for ${quoted(path)} has ${amount(size, 'byte')}, and at most ${maxFileBytes} are written. Nothing was changed.`,
    )
  }
  if (!text.isWellFormed() || text.includes('\0')) {
    throw new ToolError(
      `The text for ${quoted(path)} holds a NUL or half of a surrogate pair, which is no text in UTF-8. Nothing was changed.`,
    )
  }
  return size
}

function fileToWrite(place: Place): { readonly folder: Place['folder']; readonly name: string } {
  const { folder, name, stats } = place
  return name !== undefined && stats === undefined ? { folder, name } : requireFile(place)
}
