import { link, rename, unlink } from 'node:fs/promises'
import type { ToolContext } from '../../../execution/executor.ts'
import { ToolError } from '../../../execution/tool-error.ts'
import { partsOf, pathText, quoted } from '../names/asked-path.ts'
import type { Folder } from '../root/folder.ts'
import { statsOf, withPlace } from '../root/place.ts'
import { codeOf, faultAt } from '../root/system-fault.ts'
import type { FolderRules } from './folder-rules.ts'
import { synced } from './put-file.ts'
import { assertNothingUncovered } from './uncovered.ts'

/** What `move_file` is asked for. */
export interface MoveFileInput {
  readonly from: string
  readonly to: string
}

/** An entry of a folder that is open. */
interface Entry {
  readonly folder: Folder
  readonly name: string
}

/** Moves or renames a file or a folder. It replaces nothing; folders that are missing on the way are made. */
export async function moveFile(
  rules: FolderRules,
  input: MoveFileInput,
  { signal }: ToolContext,
): Promise<string> {
  const [fromParts, toParts] = [namedParts(input.from), namedParts(input.to)]
  return await withPlace(
    rules.root,
    fromParts.slice(0, -1),
    {},
    async ({ folder: source, name: notFolder, path }) => {
      const name = fromParts.at(-1) ?? ''
      if (notFolder !== undefined) throw new ToolError(`${quoted(pathText(path))} is no folder.`)
      const from = [...source.path, name]
      const isFolder = await requireMovable(rules, source, name)
      return await withPlace(rules.root, toParts, { toMake: true }, async (to) => {
        const target = quoted(pathText(to.path))
        if (to.name === undefined || to.stats !== undefined) {
          throw new ToolError(`${target} exists already. Nothing was moved: name a path that is free.`)
        }
        if (isFolder) await assertNothingUncovered(rules, { folder: source, name }, to.path, signal)
        requireShown(rules, to.path, isFolder)
        signal.throwIfAborted()
        await moved({ folder: source, name }, { folder: to.folder, name: to.name }, isFolder).catch(
          (error: unknown) => {
            const fault =
              codeOf(error) === 'EEXIST'
                ? new ToolError(`${target} exists already. Nothing was moved.`)
                : error
            throw faultAt(fault, pathText(from))
          },
        )
        await Promise.all([synced(source), synced(to.folder)])
        return `Moved ${quoted(pathText(from))} to ${target}.`
      })
    },
  )
}

/** Whether it is a folder that is to be moved. Throws `ToolError` for what cannot be moved. */
async function requireMovable(rules: FolderRules, folder: Folder, name: string): Promise<boolean> {
  const path = [...folder.path, name]
  requireShown(rules, path, false)
  const stats = await statsOf(folder.at(name))
  if (stats === undefined) throw new ToolError(`${quoted(pathText(path))} does not exist. Nothing was moved.`)
  requireShown(rules, path, stats.isDirectory())
  if (stats.isDirectory() || stats.isFile()) return stats.isDirectory()
  const what = stats.isSymbolicLink() ? 'a link' : 'no regular file'
  throw new ToolError(`${quoted(pathText(path))} is ${what}, and only files and folders are moved.`)
}

function requireShown({ root }: FolderRules, path: readonly string[], isFolder: boolean): void {
  const why = root.shown.unshown(path, isFolder)
  if (why !== undefined)
    throw new ToolError(`${quoted(pathText(path))} is ${why}: this tool neither shows nor changes it.`)
}

/** A file gets its new name only where that is free, then loses the old one: a crash loses nothing. */
async function moved(from: Entry, to: Entry, isFolder: boolean): Promise<void> {
  const [source, target] = [from.folder.at(from.name), to.folder.at(to.name)]
  if (isFolder) return await rename(source, target)
  try {
    await link(source, target)
  } catch (error) {
    // File systems without hard links.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(codeOf(error) ?? '')) throw error
    return await rename(source, target)
  }
  await unlink(source)
}

function namedParts(path: string): readonly string[] {
  const parts = partsOf(path)
  const last = parts.at(-1)
  if (last !== undefined && last !== '..') return parts
  throw new ToolError(`The path ${quoted(path)} ends with no name. Name the file or folder to move.`)
}
