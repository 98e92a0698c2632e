import { parseSync, Visitor, type Program } from 'oxc-parser'
import { type Finding, lineAt, type SourceFile } from './finding.ts'

/** Words that a reader has to read twice, each with what to write in its place. */
const riddles: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [/\b(?:whoever|whomever|somebody|someone|anybody|nobody|no +one)\b/gi, 'name the actor'],
  [/\bwhat +of\b/gi, 'name the thing: "which part of"'],
  [/\b(?:is|are) +told\b/gi, 'say who reports what to whom: "receives", "gets"'],
  [/\bdoes +where\b/gi, 'use one clause'],
  [/\b(?:is|are) +none\b/gi, 'say "there is no …", or return `undefined`'],
  [/\bof +what +is\b/gi, 'name the thing'],
  [/\bby +itself\b/gi, 'name the actor, or leave it out'],
  [/\bstands?\b(?! +(?:for|still)\b)/gi, 'say "is", "is recorded", "comes before"'],
  [/\b(?:goes|go|went|going) +on\b/gi, 'say "continues"'],
  [
    /(?<!\b(?:is|are|be|far|how|left|leaves?|stays?) +)\bbehind\b(?! +(?:a|its) +(?:pooler|proxy)\b)/gi,
    'say "after"',
  ],
  [/\botherwise +than\b/gi, 'say "differently from"'],
  [/\bwork(?:s|ed|ing)? +for\b/gi, 'of runs, say "child run" and "parent"'],
  [/\b(?:comes?|came) +to +rest\b/gi, 'say "stops"'],
]

/** Words that say nothing as the name of a value: a name tells what the value is. */
const riddleNames = /(?:^|_)(?:said|heard|told)(?=$|[A-Z_])|(?:Said|Heard|Told)(?=$|[A-Z_])/

/**
 * Sources whose texts ledgers hold: they say what a machine records and what a model reads, so a changed word would be a
 * difference to every run on record; or they are history.
 */
const recordedTexts =
  /^packages\/(?:core\/src\/machine\/|core\/src\/runtime\/definition\/handoff\.ts|core\/src\/runtime\/children\/child-start\.ts|ledger\/src\/(?:sqlite|postgres)\/(?:migrations|schema)\/|providers\/src\/shared\/request\/answer-instructions\.ts)/

/**
 * What people read says what it says in one reading: pages; the comments and texts of a package's sources; the comments of
 * tests, examples and scripts, and the titles of tests.
 */
export function prose(file: SourceFile): readonly Finding[] {
  return [...riddlesIn(file), ...riddleNamesIn(file)]
}

/** The names in a package's sources that are riddles. */
function riddleNamesIn(file: SourceFile): readonly Finding[] {
  if (!isPackageSource(file.path) || !/said|heard|told/i.test(file.text)) return []
  const found: Finding[] = []
  const add = ({ name, start }: { readonly name: string; readonly start: number }): void => {
    if (!riddleNames.test(name)) return
    const message = `"${name}" takes a second reading: name what the value is.`
    found.push({ rule: 'prose', level: 'error', path: file.path, line: lineAt(file.text, start), message })
  }
  new Visitor({ Identifier: add, PrivateIdentifier: add }).visit(parseSync(file.path, file.text).program)
  return found
}

function riddlesIn(file: SourceFile): readonly Finding[] {
  return textsOf(file).flatMap(({ start, text }) =>
    riddles.flatMap(([pattern, advice]) =>
      [...text.matchAll(pattern)].map(({ index, 0: word }): Finding => {
        const line = lineAt(file.text, start + index)
        const message = `"${word.replaceAll(/ +/g, ' ')}" takes a second reading: ${advice}.`
        return { rule: 'prose', level: 'error', path: file.path, line, message }
      }),
    ),
  )
}

/** A text that people read, and its place in the file. */
interface ReadText {
  readonly start: number
  readonly text: string
}

function textsOf(file: SourceFile): readonly ReadText[] {
  if (isPage(file.path)) return [{ start: 0, text: withoutCode(file.text) }]
  const isSource = isPackageSource(file.path)
  if (!isSource && !isAroundSources(file.path)) return []
  const isHistory = /\/migrations\//.test(file.path)
  const { program, comments } = parseSync(file.path, file.text)
  const found: ReadText[] = isHistory
    ? []
    : comments.map(({ start, end }) => ({ start, text: flowing(file.text.slice(start, end)) }))
  if (!isSource) return [...found, ...titlesOf(program, file.text)]
  if (recordedTexts.test(file.path)) return found
  const add = ({ start, end }: { readonly start: number; readonly end: number }): void => {
    const text = file.text.slice(start, end)
    // A text without a space is a name or an identifier.
    if (text.trim().includes(' ')) found.push({ start, text })
  }
  new Visitor({
    Literal(node) {
      if (typeof node.value === 'string') add(node)
    },
    TemplateElement: add,
  }).visit(program)
  return found
}

function isPackageSource(path: string): boolean {
  return /^packages\/[^/]+\/src\/.*\.ts$/.test(path)
}

/** Tests, benchmarks, examples and scripts; the list of riddles and its test name what they refuse. */
function isAroundSources(path: string): boolean {
  if (path === 'scripts/tidy/prose.ts' || path === 'scripts/test/tidy.spec.ts') return false
  return /^(?:packages\/[^/]+\/(?:test|bench)|bench|examples|scripts)\/.*\.ts$/.test(path)
}

/** The titles that `describe`, `it` and their variants are called with. */
function titlesOf(program: Program, text: string): readonly ReadText[] {
  const found: ReadText[] = []
  new Visitor({
    CallExpression({ callee, arguments: [title] }) {
      if (title === undefined || !/^(?:describe|it|test)\b/.test(text.slice(callee.start, callee.end))) return
      if (title.type !== 'Literal' && title.type !== 'TemplateLiteral') return
      found.push({ start: title.start, text: text.slice(title.start, title.end) })
    },
  }).visit(program)
  return found
}

/** A comment with spaces in the place of what begins its lines, so that places stay the same. */
function flowing(comment: string): string {
  return comment.replaceAll(/\n\s*(?:\*|\/\/)?/g, (start) => ' '.repeat(start.length))
}

function isPage(path: string): boolean {
  return /^(?:README|CONTRIBUTING|ARCHITECTURE)\.md$|^docs\/.*\.md$|^(?:packages|examples)\/[^/]+\/.*README\.md$/.test(
    path,
  )
}

/** The text with blanks in the place of code and links, so that places stay the same. */
function withoutCode(text: string): string {
  const blank = (code: string): string => code.replaceAll(/[^\n]/g, ' ')
  return text
    .replaceAll(/```[\s\S]*?```/g, blank)
    .replaceAll(/`[^`\n]*`/g, blank)
    .replaceAll(/\]\([^)\n]*\)/g, blank)
}
