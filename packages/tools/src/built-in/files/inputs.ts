import type { JsonObject } from '@tallystick/core/vocabulary'
import { maxPathCharacters } from './names/asked-path.ts'
import { maxGlobCharacters } from './names/glob.ts'

function pathOf(what: string): JsonObject {
  return {
    type: 'string',
    minLength: 1,
    maxLength: maxPathCharacters,
    description: `${what}, relative to the root folder, with / between names, as in src/index.ts.`,
  }
}

function numberFrom1(description: string): JsonObject {
  return { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description }
}

const within = pathOf('The folder to look in. Default: the root folder')

function globFor(what: string): JsonObject {
  return {
    type: 'string',
    minLength: 1,
    maxLength: maxGlobCharacters,
    description: `${what}, as in **/*.ts or src/{a,b}/*.md: * and ? match within a name, ** any folders. Without a / it is of a name in any folder.`,
  }
}

function objectOf(required: readonly string[], properties: JsonObject): JsonObject {
  return { type: 'object', required, additionalProperties: false, properties }
}

/** The names of the tools, without a prefix. */
export type FilesToolName =
  | 'list_files'
  | 'find_files'
  | 'search_files'
  | 'read_file'
  | 'write_file'
  | 'edit_file'
  | 'move_file'

/** The inputs of the tools, by their names. */
export const inputs: Readonly<Record<FilesToolName, JsonObject>> = {
  list_files: objectOf([], {
    path: pathOf('The folder. Default: the root folder'),
    after: {
      type: 'string',
      minLength: 1,
      maxLength: 1_000,
      description: 'Lists only the names after this one, to continue a long list.',
    },
  }),
  find_files: objectOf(['glob'], { glob: globFor('Which files'), path: within }),
  search_files: objectOf(['text'], {
    text: {
      type: 'string',
      minLength: 1,
      maxLength: 1_000,
      description: 'Text within one line, exactly as it is in the files.',
    },
    path: pathOf('The folder or file to look in. Default: the root folder'),
    glob: globFor('Which files are searched'),
    ignoreCase: { type: 'boolean', description: 'Whether upper and lower case are the same. Default false.' },
    context: {
      type: 'integer',
      minimum: 0,
      maximum: 20,
      description: 'Lines shown before and after each line. Default 0.',
    },
  }),
  read_file: objectOf(['path'], {
    path: pathOf('The file'),
    offset: numberFrom1('The first line to show. Default 1.'),
    limit: numberFrom1('How many lines to show at most. Default: as many as fit.'),
    column: numberFrom1(
      'The first character to show of the first line, to continue within a very long one. Default 1.',
    ),
  }),
  write_file: objectOf(['path', 'content'], {
    path: pathOf('The file'),
    content: { type: 'string', description: 'All that the file holds afterwards.' },
  }),
  edit_file: objectOf(['path', 'oldText', 'newText'], {
    path: pathOf('The file'),
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
  move_file: objectOf(['from', 'to'], {
    from: pathOf('The file or folder to move'),
    to: pathOf('Its new path, name included'),
  }),
}
