import { opendir } from 'node:fs/promises'
import { ToolError } from '../../../execution/tool-error.ts'
import { pathText, quoted } from '../names/asked-path.ts'
import type { Folder } from '../root/folder.ts'
import type { FolderRules } from './folder-rules.ts'

/**
 * Throws `ToolError` where a folder that is to be moved holds something that is ignored where it is, and would not be
 * where it goes: moving a folder must not be a way to read what it hides.
 */
export async function assertNothingUncovered(
  rules: FolderRules,
  { folder, name }: { readonly folder: Folder; readonly name: string },
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
        if (++visited > rules.maxVisited) throw tooMany(from, rules.maxVisited)
        const path = [...inner.path, entry.name]
        const isFolder = entry.isDirectory()
        const isShown = rules.root.shown.unshown(path, isFolder) === undefined
        if (isShown && isFolder) await look(inner, entry.name)
        if (isShown) continue
        if (rules.root.shown.unshown([...to, ...path.slice(from.length)], isFolder) !== undefined) continue
        throw new ToolError(
          `${quoted(pathText(from))} holds files that are ignored there and would not be at the new path. Nothing was moved.`,
        )
      }
    } finally {
      await inner.close()
    }
  }
  await look(folder, name)
}

function tooMany(path: readonly string[], maxVisited: number): ToolError {
  return new ToolError(
    `${quoted(pathText(path))} holds more than ${maxVisited} entries, too many to move. Move folders within it.`,
  )
}
