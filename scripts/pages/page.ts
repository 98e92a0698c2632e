// What a Markdown page asks its reader to do, read from its code blocks.

/** A code block of a page: `info` is the text after the fence, such as `ts` or `ts sketch`. */
export interface Block {
  readonly info: string
  readonly text: string
}

/** A step of a page: install packages, save a file, run a program, or run commands and compare what they print. */
export type Step =
  | { readonly kind: 'install'; readonly packages: readonly string[] }
  | { readonly kind: 'save'; readonly file: string; readonly text: string }
  | { readonly kind: 'program'; readonly text: string; readonly prints?: string }
  | { readonly kind: 'commands'; readonly text: string; readonly prints?: string }

/** The words that a fence of a documentation page may have. `ts sketch` is code of another library, and is not run. */
export const knownInfos: readonly string[] = ['ts', 'ts sketch', 'json', 'sh', 'text', 'mermaid']

/** Returns the code blocks of a Markdown page, in order. */
export function readBlocks(markdown: string): readonly Block[] {
  const blocks = markdown.matchAll(/^```([^\n]*)\n(.*?)^```$/gms)
  return [...blocks].map(([, info = '', text = '']) => ({ info: info.trim(), text }))
}

/** Returns the steps of a documentation page. A `text` block says what the step before it prints. */
export function readSteps(markdown: string): readonly Step[] {
  const steps: Step[] = []
  for (const { info, text } of readBlocks(markdown)) {
    const before = steps.at(-1)
    if (info === 'text' && (before?.kind === 'commands' || before?.kind === 'program')) {
      steps[steps.length - 1] = { ...before, prints: text }
    } else if (info === 'sh') steps.push(...commandSteps(text))
    else if (info === 'ts' || info === 'json') steps.push(codeStep(text))
  }
  return steps
}

function commandSteps(text: string): readonly Step[] {
  const lines = text.trimEnd().split('\n')
  const installs = lines.filter((line) => line.startsWith('npm install '))
  const others = lines.filter((line) => !line.startsWith('npm '))
  const steps: Step[] = installs.map((line) => ({ kind: 'install', packages: packagesIn(line) }))
  return others.length > 0 ? [...steps, { kind: 'commands', text: others.join('\n') }] : steps
}

function packagesIn(line: string): readonly string[] {
  const [command = ''] = line.split('#')
  return command
    .split(/\s+/)
    .slice(2)
    .filter((word) => word !== '' && !word.startsWith('-'))
}

/** A block whose first line is the comment `// FILE` is saved under that name; any other is a program that runs. */
function codeStep(text: string): Step {
  const file = /^\/\/ ([\w./-]+\.(?:c?ts|json))\n/.exec(text)?.[1]
  return file === undefined ? { kind: 'program', text } : { kind: 'save', file, text }
}

/** True if a program printed what the page says. In the page, `…` stands for any text. */
export function printsAs(page: string, printed: string): boolean {
  const parts = page.trimEnd().split('…').map(withoutTrailingBlanks)
  const text = withoutTrailingBlanks(printed.trimEnd())
  const [first = '', ...rest] = parts
  if (rest.length === 0) return text === first
  if (!text.startsWith(first)) return false
  let from = first.length
  for (const part of rest.slice(0, -1)) {
    const found = text.indexOf(part, from)
    if (found < 0) return false
    from = found + part.length
  }
  const last = rest.at(-1) ?? ''
  return text.length - last.length >= from && text.endsWith(last)
}

function withoutTrailingBlanks(text: string): string {
  return text.replaceAll(/[ \t]+$/gm, '')
}
