import { lstat } from 'node:fs/promises'
import type { ToolContext } from '../../../execution/executor.ts'
import { ToolError } from '../../../execution/tool-error.ts'
import { partsOf, pathText, quoted } from '../names/asked-path.ts'
import { withPlace } from '../root/place.ts'
import { amount, bytesOf } from '../text/amounts.ts'
import type { FolderRules } from './folder-rules.ts'
import { leftText, nothingLeft, shownEntries, type Visited } from './walk.ts'

/** What `list_files` is asked for. */
export interface ListFilesInput {
  readonly path?: string
  /** The name after which the list begins. */
  readonly after?: string
}

/** Lists a folder, a name a line: folders end with a slash, files have their size. */
export async function listFiles(
  rules: FolderRules,
  input: ListFilesInput,
  { signal }: ToolContext,
): Promise<string> {
  const { path: asked = '.', after } = input
  return await withPlace(rules.root, partsOf(asked), {}, async (place) => {
    const path = quoted(pathText(place.path))
    if (place.name !== undefined) throw new ToolError(`${path} is no folder. Read it as a file instead.`)
    const left = nothingLeft()
    const entries = await shownEntries(rules, place.folder, signal, left)
    if (left.unreadable > 0) throw new ToolError(`${path} cannot be read: the permission is missing.`)
    const rest = after === undefined ? entries : entries.filter(({ name }) => name > after)
    const shown: string[] = []
    let bytes = 0
    for (const entry of rest.slice(0, rules.maxEntries)) {
      const line = await lineOf(entry)
      bytes += bytesOf(line) + 1
      if (bytes > rules.maxBytes && shown.length > 0) break
      shown.push(line)
    }
    const more =
      shown.length < rest.length
        ? ` Shown are ${shown.length}: continue with after ${JSON.stringify(rest[shown.length - 1]?.name)}.`
        : ''
    const from = after === undefined ? '' : ` after ${quoted(after)}`
    return [
      `${path}: ${amount(rest.length, 'entry', 'entries')}${from}.${more}${leftText(left, rules.maxVisited)}`,
      ...shown,
    ].join('\n')
  })
}

async function lineOf({ folder, name, kind }: Visited): Promise<string> {
  if (kind === 'folder') return `${name}/`
  if (kind === 'link') return `${name} (link)`
  if (kind === 'other') return `${name} (no regular file)`
  try {
    return `${name} (${amount((await lstat(folder.at(name))).size, 'byte')})`
  } catch {
    return `${name} (gone)`
  }
}
