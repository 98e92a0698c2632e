import { Parser } from 'htmlparser2'

/** A page as Markdown. */
export interface Page {
  readonly title?: string
  readonly markdown: string
  readonly more: boolean
}

/**
 * Turns a page into Markdown of at most so many characters, without what a reader does not see; relative links are made whole. Takes time in
 * proportion to the text, whatever that is. `show` sees each text of the page before it is shown.
 */
export function toMarkdown(
  html: string,
  url: string,
  maxCharacters: number,
  show: (text: string) => string = (text) => text,
): Page {
  const reader = new PageReader(url, maxCharacters, show)
  const parser = new Parser({
    onopentag: (name, attributes) => reader.open(name, attributes),
    ontext: (text) => reader.say(text),
    onclosetag: () => reader.close(),
  })
  for (let from = 0; from < html.length && !reader.isDone; from += pieceCharacters) {
    parser.write(html.slice(from, from + pieceCharacters))
  }
  if (!reader.isDone) parser.end()
  return reader.page()
}

/** Deeper quotes and lists are written as the one around them. */
const maxIndents = 12

/** A Markdown text that grows: white space is collapsed, and marks that would enclose nothing are left out. */
class MarkdownWriter {
  readonly #maxCharacters: number
  #text = ''
  /** Line breaks before the next piece, and whether a space is. */
  #breaks = 0
  #hasSpace = false
  /** The prefixes of lines in open quotes and list items; empty for levels that are too deep. */
  readonly #indents: string[] = []
  /** How many of these the next line and the one before have in common: with those an empty line between them begins. */
  #shared = 0
  /** Replaces the prefix of the next line: the mark of a list item. */
  #lead: string | undefined
  /** Marks that are written before the next piece, such as `**`. */
  #opening: string[] = []
  /** Above 0 what follows is kept on one line. */
  flat = 0

  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters
  }

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
    const escaped = shown.replace(this.flat > 0 ? /[\\`*[\]<|]/g : /[\\`*[\]<]/g, '\\$&')
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
    const mark = '`'.repeat(Math.max(3, measureLongestRun(text) + 1))
    if (this.flat > 0) return this.code(text)
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
    const mark = '`'.repeat(measureLongestRun(line) + 1)
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
    if (this.flat > 0) this.#hasSpace = true
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

  /** Leaves out the space that the next piece would begin with. */
  trim(): void {
    this.#hasSpace = false
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

function measureLongestRun(text: string): number {
  return (text.match(/`+/g) ?? []).reduce((longest, run) => Math.max(longest, run.length), 0)
}

const maxLinkCharacters = 2_000

/** Where a link of a page leads, as Markdown takes it; `undefined` for what is not an address of a page or of mail. */
export function resolveLink(href: string | undefined, base: string): string | undefined {
  if (href === undefined || href.length > maxLinkCharacters) return undefined
  const url = URL.parse(href, base)
  if (url === null || !['http:', 'https:', 'mailto:'].includes(url.protocol)) return undefined
  if (url.href.length > maxLinkCharacters) return undefined
  return url.href.replaceAll('(', '%28').replaceAll(')', '%29')
}

/** Nothing that a person reads is nested deeper; the parser takes longer for each element that is open. */
const maxDepth = 500
const maxTitleCharacters = 300
const pieceCharacters = 16_384

/** Elements whose content a reader of the page does not see as text. */
const unseen: ReadonlySet<string> = new Set(
  'script style noscript template svg math canvas iframe object select textarea audio video datalist'.split(
    ' ',
  ),
)
const paragraphs: ReadonlySet<string> = new Set('p dl figure form address details'.split(' '))
const lines: ReadonlySet<string> = new Set(
  (
    'div section article main header footer nav aside dt dd figcaption fieldset legend summary caption center hgroup ' +
    'search menu'
  ).split(' '),
)
const marks: ReadonlyMap<string, string> = new Map(
  Object.entries({ '**': 'b strong', '*': 'i em cite dfn var', '~~': 's del strike' }).flatMap(
    ([mark, names]) => names.split(' ').map((name) => [name, mark] as const),
  ),
)

type Attributes = Readonly<Record<string, string>>

/** An element that is open: what its end does. */
type End = () => void

class PageReader {
  readonly #writer: MarkdownWriter
  #base: string
  readonly #ends: End[] = []
  /** How many open elements are unseen. */
  #unseen = 0
  #title: string | undefined
  /** Text that is kept as it is, of a title or of code. */
  #kept: string[] | undefined
  readonly #lists: { next: number | undefined }[] = []
  #cells = 0
  #rows: number | undefined
  #isTooDeep = false

  readonly #show: (text: string) => string

  constructor(url: string, maxCharacters: number, show: (text: string) => string) {
    this.#show = show
    this.#writer = new MarkdownWriter(maxCharacters)
    this.#base = url
  }

  get isDone(): boolean {
    return this.#writer.isFull || this.#isTooDeep
  }

  page(): Page {
    const title = this.#title?.replace(/\s+/g, ' ').trim().slice(0, maxTitleCharacters)
    return {
      ...(title && { title }),
      markdown: this.#writer.text,
      more: this.isDone,
    }
  }

  say(text: string): void {
    if (this.isDone) return
    if (this.#unseen > 0) return
    if (this.#kept === undefined) this.#writer.say(this.#show(text))
    else this.#kept.push(text)
  }

  open(name: string, attributes: Attributes): void {
    if (this.#ends.length === maxDepth) {
      this.#isTooDeep = true
      return
    }
    this.#ends.push(this.#begin(name, attributes))
  }

  close(): void {
    if (!this.isDone) this.#ends.pop()?.()
  }

  #begin(name: string, attributes: Attributes): End {
    if (this.#unseen > 0 || unseen.has(name) || isHidden(attributes)) {
      this.#unseen++
      return () => void this.#unseen--
    }
    if (this.#kept !== undefined) {
      if (name === 'br') this.#kept.push('\n')
      return () => {}
    }
    const writer = this.#writer
    if (/^h[1-6]$/.test(name) && writer.flat === 0) {
      return this.#block(2, () => writer.write(`${'#'.repeat(Number(name[1]))} `))
    }
    const mark = marks.get(name)
    if (mark !== undefined) {
      writer.open(mark)
      return () => writer.close(mark)
    }
    if (paragraphs.has(name)) return this.#block(2)
    if (lines.has(name)) return this.#block(1)
    return this.#special(name, attributes)
  }

  #special(name: string, attributes: Attributes): End {
    const writer = this.#writer
    switch (name) {
      case 'title':
        return this.#keep((text) => {
          this.#title ??= text
        })
      case 'base':
        this.#base = resolveLink(attributes['href'], this.#base) ?? this.#base
        return () => {}
      case 'pre':
        return this.#keep((text) => {
          writer.fence(text.replace(/^\n/, '').trimEnd())
        })
      case 'code':
      case 'kbd':
      case 'samp':
        return this.#keep((text) => writer.code(text))
      case 'a':
        return this.#link(resolveLink(attributes['href'], this.#base))
      case 'img': {
        const target = resolveLink(attributes['src'], this.#base)
        const text = attributes['alt']?.replace(/[\s[\]\\`*<]+/g, ' ').trim()
        if (text) writer.write(target === undefined ? text : `![${text}](${target})`)
        return () => {}
      }
      case 'br':
        writer.break(1)
        return () => {}
      case 'hr':
        return this.#block(2, () => writer.write('---'))
      case 'blockquote':
        return this.#indented(2, '> ')
      case 'ul':
        return this.#list(undefined)
      case 'ol':
        return this.#list(/^\d{1,6}$/.test(attributes['start'] ?? '') ? Number(attributes['start']) : 1)
      case 'li':
        return this.#item()
      case 'table':
      case 'tr':
      case 'td':
      case 'th':
        return this.#tablePart(name)
      default:
        return () => {}
    }
  }

  #block(breaks: 1 | 2, begin: () => void = () => {}): End {
    this.#writer.break(breaks)
    begin()
    return () => this.#writer.break(breaks)
  }

  #keep(use: (text: string) => void): End {
    const kept: string[] = []
    this.#kept = kept
    return () => {
      this.#kept = undefined
      use(this.#show(kept.join('')))
    }
  }

  #link(target: string | undefined): End {
    const writer = this.#writer
    if (target === undefined || writer.flat > 0) return () => {}
    writer.open('[')
    writer.flat++
    return () => {
      writer.flat--
      writer.close(`](${target})`)
    }
  }

  #list(next: number | undefined): End {
    const end = this.#block(this.#lists.length === 0 ? 2 : 1)
    this.#lists.push({ next })
    return () => {
      this.#lists.pop()
      end()
    }
  }

  #item(): End {
    const list = this.#lists.at(-1)
    const mark = list?.next === undefined ? '- ' : `${list.next++}. `
    return this.#writer.flat > 0 ? this.#block(1) : this.#indented(1, ' '.repeat(mark.length), mark)
  }

  #indented(breaks: 1 | 2, indent: string, lead?: string): End {
    const writer = this.#writer
    const end = this.#block(breaks, () => writer.indent(indent, lead))
    return () => {
      writer.outdent()
      end()
    }
  }

  /** A table in a cell or in a link is text. */
  #tablePart(name: 'table' | 'tr' | 'td' | 'th'): End {
    const writer = this.#writer
    if (writer.flat > 0) return this.#block(1)
    if (name === 'table') {
      const end = this.#block(2)
      const around = this.#rows
      this.#rows = 0
      return () => {
        this.#rows = around
        end()
      }
    }
    if (this.#rows === undefined) return this.#block(1)
    if (name === 'tr') {
      writer.break(1)
      this.#cells = 0
      return () => this.#endRow()
    }
    writer.write(this.#cells === 0 ? '| ' : ' ')
    this.#cells++
    writer.flat++
    return () => {
      writer.flat--
      writer.trim()
      writer.write(' |')
    }
  }

  #endRow(): void {
    if (this.#cells === 0 || this.#rows === undefined) return
    if (this.#rows++ === 0) {
      this.#writer.break(1)
      this.#writer.write(`|${' --- |'.repeat(this.#cells)}`)
    }
    this.#writer.break(1)
  }
}

function isHidden(attributes: Attributes): boolean {
  if ('hidden' in attributes || attributes['aria-hidden'] === 'true') return true
  const style = attributes['style']?.replace(/\s+/g, '').toLowerCase() ?? ''
  return style.includes('display:none') || style.includes('visibility:hidden')
}
