import { type Finding, lineAt, type SourceFile } from './finding.ts'

/** Words that a reader has to read twice, each with what to write in its place. */
const riddles: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [/\b(?:whoever|whomever|somebody|someone|anybody|nobody|no one)\b/gi, 'name the actor'],
  [/\bwhat of\b/gi, 'name the thing: "which part of"'],
  [/\b(?:is|are) told\b/gi, 'say who reports what to whom: "receives", "gets"'],
  [/\bdoes where\b/gi, 'use one clause'],
  [/\b(?:is|are) none\b/gi, 'say "there is no …", or return `undefined`'],
  [/\bof what is\b/gi, 'name the thing'],
  [/\bby itself\b/gi, 'name the actor, or leave it out'],
  [/\bstands? in\b/gi, 'say "is in", "holds", "replaces"'],
  [/\botherwise than\b/gi, 'say "differently from"'],
]

/** How many docstrings with such words each package may still have. The numbers only fall. */
export const docstringsAllowed: Readonly<Record<string, number>> = {
  core: 0,
  ledger: 0,
  replay: 0,
  providers: 0,
  tools: 0,
  cli: 0,
}

/** Pages that people read say what they say in one reading: they hold no word of the list. */
export function prose(file: SourceFile): readonly Finding[] {
  if (!isPage(file.path)) return []
  return riddlesIn(withoutCode(file.text)).map(({ index, word, advice }) => ({
    rule: 'prose',
    level: 'error',
    path: file.path,
    line: lineAt(file.text, index),
    message: `"${word}" takes a second reading: ${advice}.`,
  }))
}

/** The docstrings of each package hold no more such words than they are allowed to. */
export function docstringProse(files: readonly SourceFile[]): readonly Finding[] {
  return Object.entries(docstringsAllowed).flatMap(([name, allowed]) => {
    const found = files.flatMap((file) =>
      file.path.startsWith(`packages/${name}/src/`) && file.path.endsWith('.ts')
        ? riddlesInDocstrings(file)
        : [],
    )
    if (found.length === allowed) return []
    const path = `packages/${name}/src`
    const sum = `${found.length} docstrings take a second reading, ${allowed} may`
    const message =
      found.length > allowed
        ? `${sum}; for example ${found.at(-1)?.at}: "${found.at(-1)?.word}", ${found.at(-1)?.advice}.`
        : `${sum}: write ${found.length} in scripts/tidy/prose.ts, so that it stays so.`
    return [{ rule: 'prose', level: 'error', path, line: 1, message } as const]
  })
}

interface Riddle {
  readonly index: number
  readonly word: string
  readonly advice: string
}

function riddlesIn(text: string): readonly Riddle[] {
  return riddles.flatMap(([pattern, advice]) =>
    [...text.matchAll(pattern)].map(({ index, 0: word }) => ({ index, word, advice })),
  )
}

/** The first riddle of each docstring that has one. */
function riddlesInDocstrings(file: SourceFile): readonly (Riddle & { readonly at: string })[] {
  return [...file.text.matchAll(/\/\*\*[\s\S]*?\*\//g)].flatMap((docstring) => {
    const [riddle] = riddlesIn(docstring[0].replaceAll(/\n\s*\*/g, ' '))
    return riddle ? [{ ...riddle, at: `${file.path}:${lineAt(file.text, docstring.index)}` }] : []
  })
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
