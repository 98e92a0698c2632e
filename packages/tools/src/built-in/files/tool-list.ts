import type { FilesOptions } from './files-tools.ts'
import type { Tool } from '@tallystick/core'
import type { JsonObject, ToolEffect } from '@tallystick/core/vocabulary'
import { defineTool, type ReconcileAnswer, type ReconcileContext } from '../../define/define-tool.ts'
import type { ToolContext } from '../../define/run-tool.ts'
import { editFile, reconcileEdit, reconcileMove, reconcileWrite } from './edit.ts'
import { maxGlobCharacters, maxPathCharacters } from './names.ts'
import { listFiles, readFile } from './read.ts'
import { findFiles, searchFiles } from './search.ts'
import type { FolderRules } from './text.ts'
import { moveFile, writeFile } from './write.ts'

function describePath(what: string): JsonObject {
  return {
    type: 'string',
    minLength: 1,
    maxLength: maxPathCharacters,
    description: `${what}, relative to the root folder, with / between names, as in src/index.ts.`,
  }
}

function describeNumber(description: string): JsonObject {
  return { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description }
}

const within = describePath('The folder to look in. Default: the root folder')

function describeGlob(what: string): JsonObject {
  return {
    type: 'string',
    minLength: 1,
    maxLength: maxGlobCharacters,
    description: `${what}, as in **/*.ts or src/{a,b}/*.md: * and ? match within a name, ** any folders. Without a / it is of a name in any folder.`,
  }
}

function describeObject(required: readonly string[], properties: JsonObject): JsonObject {
  return { type: 'object', required, additionalProperties: false, properties }
}

interface Body {
  readonly effect: ToolEffect
  readonly description: string
  readonly input: JsonObject
  readonly execute: (rules: FolderRules, input: never, context: ToolContext) => Promise<string>
  /** Looks, after a crash, whether a call took place. */
  readonly reconcile?: (
    rules: FolderRules,
    input: never,
    context: ReconcileContext,
  ) => Promise<ReconcileAnswer>
}

const bodies: Readonly<Record<string, Body>> = {
  list_files: {
    effect: 'read',
    description:
      'Lists the files and folders of one folder. Use it to see what there is; use find_files to look further down.',
    input: describeObject([], {
      path: describePath('The folder. Default: the root folder'),
      after: {
        type: 'string',
        minLength: 1,
        maxLength: 1_000,
        description: 'Lists only the names after this one, to continue a long list.',
      },
    }),
    execute: listFiles,
  },
  find_files: {
    effect: 'read',
    description:
      'Finds files by a glob such as **/*.ts, in a folder and all folders below it. Use it when you know how the names look.',
    input: describeObject(['glob'], { glob: describeGlob('Which files'), path: within }),
    execute: findFiles,
  },
  search_files: {
    effect: 'read',
    description:
      'Finds the lines of files that hold a text, exactly as given: no regular expression. Use it to find where something is used or said.',
    input: describeObject(['text'], {
      text: {
        type: 'string',
        minLength: 1,
        maxLength: 1_000,
        description: 'Text within one line, exactly as it is in the files.',
      },
      path: describePath('The folder or file to look in. Default: the root folder'),
      glob: describeGlob('Which files are searched'),
      ignoreCase: {
        type: 'boolean',
        description: 'Whether upper and lower case are the same. Default false.',
      },
      context: {
        type: 'integer',
        minimum: 0,
        maximum: 20,
        description: 'Lines shown before and after each line. Default 0.',
      },
    }),
    execute: searchFiles,
  },
  read_file: {
    effect: 'read',
    description:
      'Reads a text file, each line after its number and a tab. Of a long file it shows the first part and says how to get the rest.',
    input: describeObject(['path'], {
      path: describePath('The file'),
      offset: describeNumber('The first line to show. Default 1.'),
      limit: describeNumber('How many lines to show at most. Default: as many as fit.'),
      column: describeNumber(
        'The first character to show of the first line, to continue within a very long one. Default 1.',
      ),
    }),
    execute: readFile,
  },
  write_file: {
    effect: 'write',
    description:
      'Creates a text file, or replaces all that a file holds; missing folders are made. To change part of a file use edit_file.',
    input: describeObject(['path', 'content'], {
      path: describePath('The file'),
      content: { type: 'string', description: 'All that the file holds afterwards.' },
    }),
    execute: writeFile,
    reconcile: reconcileWrite,
  },
  edit_file: {
    effect: 'write',
    description:
      'Replaces an exact text in a file by another one. Read the file first, and copy oldText from it without the numbers of the lines; ' +
      'it has to occur once, so take enough of the lines around it, unless replaceAll is true.',
    input: describeObject(['path', 'oldText', 'newText'], {
      path: describePath('The file'),
      oldText: {
        type: 'string',
        minLength: 1,
        description: 'The text to replace, exactly as it is in the file, white space included.',
      },
      newText: { type: 'string', description: 'The text in its place.' },
      replaceAll: {
        type: 'boolean',
        description: 'Whether every occurrence is replaced. Default false: oldText occurs once.',
      },
    }),
    execute: editFile,
    reconcile: reconcileEdit,
  },
  move_file: {
    effect: 'write',
    description: 'Moves or renames a file or a folder. It replaces nothing: the new path has to be free.',
    input: describeObject(['from', 'to'], {
      from: describePath('The file or folder to move'),
      to: describePath('Its new path, name included'),
    }),
    execute: moveFile,
    reconcile: reconcileMove,
  },
}

/** The tools over a root that was resolved. */
export function createFilesTools(
  rules: FolderRules,
  write: boolean,
  { prefix = '', about, timeoutMs = 30_000, approval }: Omit<FilesOptions, 'root'>,
): readonly Tool[] {
  const offered = Object.entries(bodies).filter(([, { effect }]) => write || effect === 'read')
  return offered.map(([name, { effect, description, input, execute, reconcile }]) =>
    defineTool({
      name: prefix + name,
      description: about === undefined ? description : `${about.trim()} ${description}`,
      input,
      effect,
      timeoutMs,
      ...(effect === 'write' && approval !== undefined && { approval }),
      // The schema has been checked.
      execute: (given, context) => execute(rules, given as never, context),
      reconcile: reconcile && ((given, context) => reconcile(rules, given as never, context)),
    }),
  )
}
