import type { ToolContext } from '../../../execution/executor.ts'
import { ToolError } from '../../../execution/tool-error.ts'
import { partsOf, pathText, quoted } from '../names/asked-path.ts'
import { type Place, withPlace } from '../root/place.ts'
import type { Root } from '../root/root.ts'
import { amount } from '../text/amounts.ts'
import { type FileText, textOfFile } from '../text/text-file.ts'

/** What all tools of a family share: the root, and the bounds of one call. */
export interface FolderRules {
  readonly root: Root
  /** Bytes of text shown in one result. */
  readonly maxBytes: number
  /** Bytes of a file that is read, searched or written. */
  readonly maxFileBytes: number
  /** Files, folders or matching lines shown in one result. */
  readonly maxEntries: number
  /** Files and folders that one call looks at. */
  readonly maxVisited: number
}

/** A text file, as a call has read it. */
export interface ReadText extends Extract<FileText, { kind: 'text' }> {
  /** The names from the root down, links resolved. */
  readonly path: readonly string[]
}

/** Reads the text file at a path. Throws `ToolError` for what is no text file, or too large a one. */
export async function readText(
  rules: FolderRules,
  path: string,
  { signal }: Pick<ToolContext, 'signal'>,
): Promise<ReadText> {
  return await withPlace(rules.root, partsOf(path), {}, async (place) => await textAt(rules, place, signal))
}

/** The text of the file at a place. Throws `ToolError` for what is no text file, or too large a one. */
export async function textAt(rules: FolderRules, place: Place, signal: AbortSignal): Promise<ReadText> {
  const path = quoted(pathText(place.path))
  const { folder, name } = requireFile(place)
  const access = await rules.root.access()
  const file = await access.openFile(folder, name)
  try {
    const read = await textOfFile(file, rules.maxFileBytes, signal)
    if (read.kind === 'text') return { ...read, path: place.path }
    if (read.kind === 'binary') {
      throw new ToolError(
        `${path} is no text in UTF-8 but binary (${amount(read.size, 'byte')}): this tool reads text only.`,
      )
    }
    throw new ToolError(
      `${path} is too large: it has ${amount(read.size, 'byte')}, and at most ${rules.maxFileBytes} are read.`,
    )
  } finally {
    await file.close()
  }
}

/** The place of a regular file. Throws `ToolError` where something else, or nothing, is there. */
export function requireFile({ folder, name, path, stats }: Place): {
  readonly folder: Place['folder']
  readonly name: string
} {
  if (name !== undefined && stats?.isFile()) return { folder, name }
  const what =
    name === undefined ? 'a folder, and a file is needed' : 'no regular file but a device, a pipe or a socket'
  throw new ToolError(`${quoted(pathText(path))} is ${what}.`)
}
