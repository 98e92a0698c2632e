import type { Tool } from '@tallystick/core'
import type { JsonObject, ToolEffect } from '@tallystick/core/vocabulary'
import { defineTool } from '../../definition/define-tool.ts'
import type { ReconcileAnswer, ReconcileContext } from '../../definition/tool-specification.ts'
import type { ToolContext } from '../../execution/executor.ts'
import type { FilesOptions } from './files-options.ts'
import { type FilesToolName, inputs } from './inputs.ts'
import { editFile } from './tools/edit-file.ts'
import { findFiles } from './tools/find-files.ts'
import type { FolderRules } from './tools/folder-rules.ts'
import { listFiles } from './tools/list-files.ts'
import { moveFile } from './tools/move-file.ts'
import { readFile } from './tools/read-file.ts'
import { reconciledEdit, reconciledMove, reconciledWrite } from './tools/reconciled.ts'
import { searchFiles } from './tools/search-files.ts'
import { writeFile } from './tools/write-file.ts'

/** The tools over a root that was resolved. */
export function filesToolsOf(
  rules: FolderRules,
  write: boolean,
  { prefix = '', about, timeoutMs = 30_000, approval }: Omit<FilesOptions, 'root'>,
): readonly Tool[] {
  const toolOf = (name: FilesToolName): Tool => {
    const { effect, description, execute, reconcile } = bodies[name]
    // The schema has been checked.
    const run = execute as (rules: FolderRules, input: JsonObject, context: ToolContext) => Promise<string>
    const look =
      reconcile &&
      ((input: JsonObject, context: ReconcileContext) => reconcile(rules, input as never, context))
    return defineTool({
      name: prefix + name,
      description: about === undefined ? description : `${about.trim()} ${description}`,
      input: inputs[name],
      effect,
      timeoutMs,
      ...(effect === 'write' && approval !== undefined && { approval }),
      execute: (input, context) => run(rules, input, context),
      reconcile: look,
    })
  }
  const names = Object.keys(bodies) as FilesToolName[]
  return names.filter((name) => write || bodies[name].effect === 'read').map(toolOf)
}

interface Body {
  readonly effect: ToolEffect
  readonly description: string
  readonly execute: (rules: FolderRules, input: never, context: ToolContext) => Promise<string>
  /** Looks, after a crash, whether a call took place. */
  readonly reconcile?: (
    rules: FolderRules,
    input: never,
    context: ReconcileContext,
  ) => Promise<ReconcileAnswer>
}

const bodies: Readonly<Record<FilesToolName, Body>> = {
  list_files: {
    effect: 'read',
    description:
      'Lists the files and folders of one folder. Use it to see what there is; use find_files to look further down.',
    execute: listFiles,
  },
  find_files: {
    effect: 'read',
    description:
      'Finds files by a glob such as **/*.ts, in a folder and all folders below it. Use it when you know how the names look.',
    execute: findFiles,
  },
  search_files: {
    effect: 'read',
    description:
      'Finds the lines of files that hold a text, exactly as given: no regular expression. Use it to find where something is used or said.',
    execute: searchFiles,
  },
  read_file: {
    effect: 'read',
    description:
      'Reads a text file, each line after its number and a tab. Of a long file it shows the first part and says how to get the rest.',
    execute: readFile,
  },
  write_file: {
    effect: 'write',
    description:
      'Creates a text file, or replaces all that a file holds; missing folders are made. To change part of a file use edit_file.',
    execute: writeFile,
    reconcile: reconciledWrite,
  },
  edit_file: {
    effect: 'write',
    description:
      'Replaces an exact text in a file by another one. Read the file first, and copy oldText from it without the numbers of the lines; ' +
      'it has to occur once, so take enough of the lines around it, unless replaceAll is true.',
    execute: editFile,
    reconcile: reconciledEdit,
  },
  move_file: {
    effect: 'write',
    description: 'Moves or renames a file or a folder. It replaces nothing: the new path has to be free.',
    execute: moveFile,
    reconcile: reconciledMove,
  },
}
