import type { Tool } from '@tallystick/core'
import { requireOptions } from '@tallystick/core/kit'
import { type FilesOptions, filesOptions } from './files-options.ts'
import { shownNames } from './names/shown-names.ts'
import { rootAt } from './root/root.ts'
import { filesToolsOf } from './tool-list.ts'
import type { FolderRules } from './tools/folder-rules.ts'

export type { FilesOptions } from './files-options.ts'

/**
 * Tools over a folder: `list_files`, `find_files`, `search_files` and `read_file`; with `write: true` also `write_file`,
 * `edit_file` and `move_file`. Throws `ConfigurationError` where there is no such folder.
 *
 * Paths are relative to the folder. Links inside it are followed where they lead to another place inside it; nothing
 * outside is read, written, or said to exist. On Linux that holds while other processes change folders and links, since
 * every name is looked up in a folder that is held open. Elsewhere the content of a file is only used once the open file
 * was found to be inside; do not rely on it to hold off a process that swaps folders and links at the same time.
 */
export function filesTools(options: FilesOptions): readonly Tool[] {
  requireOptions('filesTools', filesOptions, options)
  const { root, write = false, hidden = false, ignore = ['node_modules/'] } = options
  const rules: FolderRules = {
    root: rootAt('filesTools', root, shownNames('filesTools', ignore, hidden)),
    maxBytes: options.maxBytes ?? 50_000,
    maxFileBytes: options.maxFileBytes ?? 10_000_000,
    maxEntries: options.maxEntries ?? 500,
    maxVisited: options.maxVisited ?? 100_000,
  }
  return filesToolsOf(rules, write, options)
}
