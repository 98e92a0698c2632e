import type { Equivalent } from '../equivalent.ts'

/** A mutant of a file, and why it changes nothing. */
type Listed = readonly [
  within: string,
  operator: string,
  original: string,
  becomes: string,
  why: string,
  occurrence?: number,
]

const howMuch = 'How much is read at once changes nothing of what is read.'

const listed: Readonly<Record<string, readonly Listed[]>> = {
  'built-in/files/tools/search-files.ts': [
    ['searchFiles', 'literal', '1', '2', 'It finds a line more than is shown, of which nothing is read.', 1],
    [
      ...(['matchesIn', 'statement', 'if (numbers.size === 0) return []', ';'] as const),
      'It only spares parting a text into lines of which none is shown.',
    ],
  ],
  'built-in/files/text/text-file.ts': [
    ['', 'literal', '256', '257', howMuch],
    ['', 'literal', '1024', '1025', howMuch],
    [
      ...(['textOfFile', 'statement', 'if (size === stats.size) break', ';'] as const),
      'It only spares a read that finds the end of the file.',
    ],
  ],
  'built-in/files/tools/walk.ts': [
    [
      ...(['walk', 'logical', 'left.isCut || visited.path.length >= maxDepth'] as const),
      '(visited.path.length >= maxDepth)',
      'It only spares opening folders of which nothing is looked at any more.',
    ],
    ['shownEntries', 'element', 'bufferSize: 256', '', howMuch],
    ['shownEntries', 'literal', '256', '257', howMuch],
  ],
  'built-in/files/tools/find-files.ts': [
    [
      ...(['askedGlob', 'statement', 'if (!(error instanceof GlobError)) throw error', ';'] as const),
      'Reading a glob throws nothing else.',
    ],
  ],
  'built-in/files/tools/move-file.ts': [
    [
      ...(['moved', 'statement', 'if (isFolder) return await rename(source, target)', ';'] as const),
      'The system refuses a second name of a folder with EPERM, and a rename follows.',
    ],
  ],
  'built-in/files/tools/read-file.ts': [
    [
      ...(['within', 'method', 'text.slice(0, maxBytes)', 'text'] as const),
      'It only spares making bytes of what is cut off.',
    ],
  ],
  'built-in/shell/run-program.ts': [
    [
      'runProgram',
      'statement',
      'input?.destroy()',
      ';',
      'Node destroys the input of a process that has ended.',
    ],
    ['started', 'element', "'pipe',", '', 'Node makes a pipe of a stream of which nothing is said.'],
    ['started', 'element', ", 'pipe'", '', 'Node makes a pipe of a stream of which nothing is said.'],
  ],
  'built-in/shell/kept-output.ts': [
    ['wholeEnd', 'comparison', '>=', '>', 'No character in UTF-8 begins with the byte 0xc0.', 2],
    ['wholeEnd', 'literal', '0xc0', '193', 'No character in UTF-8 begins with the byte 0xc0.', 1],
  ],
  'content/content.ts': [
    ['mark', 'element', 'value: true', '', 'A part is known by having the mark, whatever its value.'],
    ['base64', 'comparison', '<', '<=', 'It adds an empty piece once more.'],
  ],
  'built-in/memory/search-words.ts': [
    [
      ...(['mayContinue', 'comparison', '>', '>='] as const),
      'A written word has an odd number of characters: a letter, and two digits for each byte.',
    ],
  ],
  'built-in/memory/memory-tools.ts': [
    ['listTool', 'literal', '1', '2', 'One more than is shown tells that there are more, and so do two.'],
  ],
  'built-in/memory/sqlite-memory.ts': [
    [
      ...(['opened', 'statement', "database.pragma('synchronous = full')", ';'] as const),
      'SQLite syncs fully unless it was built otherwise.',
    ],
    ['', 'literal', '5_000', '5001', 'Whether a writer waits a millisecond longer depends on the machine.'],
  ],
  'toolkit/ready-middleware.ts': [
    ['rateLimit', 'statement', 'starts.delete(key)', ';', 'It only frees what limits nothing any more.'],
  ],
  'toolkit/read-result.ts': [
    ['wasShown', 'comparison', '>', '>=', 'A result has a place that no handoff and no edit has.'],
  ],
}

/** Mutants of built-in tools and of the toolkit that change nothing observable. */
export const builtInToolsEquivalents: readonly Equivalent[] = Object.entries(listed).flatMap(
  ([file, mutants]) =>
    mutants.map(([within, operator, original, becomes, why, occurrence = 0]) => ({
      path: `packages/tools/src/${file}`,
      ...{ within, operator, original, becomes, occurrence, why },
    })),
)
