/** Deeper quotes and lists are written as the one around them. */
const maxIndents = 12

/** A Markdown text that grows: white space is collapsed, and marks that would enclose nothing are left out. */
export class MarkdownWriter {
  readonly #maxCharacters: number
  #text = ''
  /** Line breaks before the next piece, and whether a space is. */
  #breaks = 0
  #hasSpace = false
  /** What every line of an open quote or list item begins with; of levels that are too deep nothing. */
  readonly #indents: string[] = []
  /** How many of these the next line and the one before have in common: with those an empty line between them begins. */
  #shared = 0
  /** What the next line begins with instead: the mark of a list item. */
  #lead: string | undefined
  /** Marks that are written before the next piece, such as `**`. */
  #opening: string[] = []
  #flat = 0

  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters
  }

  /** Whether it holds as much as it may. */
  get isFull(): boolean {
    return this.#text.length >= this.#maxCharacters
  }

  get text(): string {
    return this.#text.slice(0, this.#maxCharacters)
  }

  /** Text as a page holds it, with all that Markdown would take for its own escaped. */
  say(text: string): void {
    const words = text.replace(/[\s\u00a0]+/g, ' ')
    if (words.startsWith(' ')) this.#hasSpace = true
    const shown = words.trim()
    if (shown === '') return
    const escaped = shown.replace(this.#flat > 0 ? /[\\`*[\]<|]/g : /[\\`*[\]<]/g, '\\$&')
    // A line that begins like a heading, a quote, a list, or a rule.
    const isLine = this.#isLineStart() && /^(?:[#>+=~-]|\d{1,9}[.)])/.test(escaped)
    this.write(isLine ? `\\${escaped}` : escaped)
    this.#hasSpace = words.endsWith(' ')
  }

  /** Markdown of our own, after the breaks, the space and the marks that wait for it. */
  write(markdown: string): void {
    this.#line()
    if (this.#hasSpace && !this.#text.endsWith(' ')) this.#text += ' '
    this.#hasSpace = false
    this.#text += this.#opening.join('') + markdown
    this.#opening = []
  }

  /** Text with its line breaks, between fences longer than any in it. */
  fence(text: string): void {
    const mark = '`'.repeat(Math.max(3, longestRun(text) + 1))
    if (this.#flat > 0) return this.code(text)
    this.break(2)
    this.write(mark)
    for (const line of text.split('\n')) {
      if (this.isFull) break
      this.break(1)
      this.#line()
      this.#text += line
    }
    this.break(1)
    this.write(mark)
    this.break(2)
  }

  /** Text within a line, as it is. */
  code(text: string): void {
    const line = text.replace(/\s+/g, ' ').trim()
    if (line === '') return
    const mark = '`'.repeat(longestRun(line) + 1)
    const pad = line.startsWith('`') || line.endsWith('`') ? ' ' : ''
    this.write(mark + pad + line + pad + mark)
  }

  /** A mark that is written before the next piece. */
  open(mark: string): void {
    this.#opening.push(mark)
  }

  /** The mark that ends what `open` began; where nothing was written since, neither of the two. */
  close(mark: string): void {
    if (this.#opening.pop() === undefined) this.#text += mark
  }

  /** Line breaks before the next piece; within a table's cell or a link a space. */
  break(count: 1 | 2): void {
    if (this.#flat > 0) this.#hasSpace = true
    else this.#breaks = Math.max(this.#breaks, count)
  }

  /** Lets the lines to come begin with `indent`, and the first of them with `lead`. */
  indent(indent: string, lead?: string): void {
    const isShown = this.#indents.length < maxIndents
    if (lead !== undefined) this.#lead = this.#indents.join('') + (isShown ? lead : '')
    this.#indents.push(isShown ? indent : '')
  }

  outdent(): void {
    this.#indents.pop()
    this.#shared = Math.min(this.#shared, this.#indents.length)
    this.#lead = undefined
  }

  /** Keeps what follows on one line, until `unflatten`. */
  flatten(): void {
    this.#flat++
  }

  unflatten(): void {
    this.#flat--
  }

  /** Leaves out the space that the next piece would begin with. */
  trim(): void {
    this.#hasSpace = false
  }

  get isFlat(): boolean {
    return this.#flat > 0
  }

  #isLineStart(): boolean {
    return this.#text === '' || this.#breaks > 0
  }

  #line(): void {
    if (!this.#isLineStart()) return
    const prefix = this.#indents.join('')
    const between = this.#indents.slice(0, this.#shared).join('').trimEnd()
    if (this.#text !== '') this.#text += this.#breaks === 2 ? `\n${between}\n` : '\n'
    this.#shared = this.#indents.length
    this.#text += this.#lead ?? prefix
    this.#lead = undefined
    this.#breaks = 0
    this.#hasSpace = false
  }
}

/** The length of the longest run of backticks. */
function longestRun(text: string): number {
  return (text.match(/`+/g) ?? []).reduce((longest, run) => Math.max(longest, run.length), 0)
}
