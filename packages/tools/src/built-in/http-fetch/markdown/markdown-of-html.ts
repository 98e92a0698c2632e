import { Parser } from 'htmlparser2'
import { MarkdownWriter } from './markdown-writer.ts'
import { linkTarget } from './page-links.ts'

/** A page as Markdown. */
export interface Page {
  readonly title?: string
  readonly markdown: string
  /** Whether there is more of the page. */
  readonly more: boolean
}

/** Nothing that a person reads is nested deeper; the parser takes longer for each element that is open. */
const maxDepth = 500
const maxTitleCharacters = 300
const pieceCharacters = 16_384

/** Elements whose content a reader of the page does not see as text. */
const unseen: ReadonlySet<string> = new Set([
  ...['script', 'style', 'noscript', 'template', 'svg', 'math', 'canvas', 'iframe', 'object', 'select'],
  ...['textarea', 'audio', 'video', 'datalist'],
])
const paragraphs: ReadonlySet<string> = new Set(['p', 'dl', 'figure', 'table', 'form', 'address', 'details'])
const lines: ReadonlySet<string> = new Set([
  ...['div', 'section', 'article', 'main', 'header', 'footer', 'nav', 'aside', 'dt', 'dd', 'figcaption'],
  ...['fieldset', 'legend', 'summary', 'caption', 'center', 'hgroup', 'search', 'menu'],
])
const marks: ReadonlyMap<string, string> = new Map([
  ...['b', 'strong'].map((name) => [name, '**'] as const),
  ...['i', 'em', 'cite', 'dfn', 'var'].map((name) => [name, '*'] as const),
  ...['s', 'del', 'strike'].map((name) => [name, '~~'] as const),
])

type Attributes = Readonly<Record<string, string>>

/** An element that is open: what its end does. */
type End = () => void

/**
 * What a reader sees of a page, as Markdown of at most so many characters; relative links are made whole. Takes time in
 * proportion to the text, whatever that is. `show` sees each text of the page before it is shown.
 */
export function markdownOfHtml(
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
    const heading = /^h[1-6]$/.test(name)
    if (heading && !writer.isFlat) {
      return this.#block(2, () => writer.write(`${'#'.repeat(Number(name[1]))} `))
    }
    const mark = marks.get(name)
    if (mark !== undefined) {
      writer.open(mark)
      return () => writer.close(mark)
    }
    if (paragraphs.has(name) && name !== 'table') return this.#block(2)
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
        this.#base = linkTarget(attributes['href'], this.#base) ?? this.#base
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
        return this.#link(linkTarget(attributes['href'], this.#base))
      case 'img':
        return this.#image(attributes)
      case 'br':
        writer.break(1)
        return () => {}
      case 'hr':
        return this.#block(2, () => writer.write('---'))
      case 'blockquote':
        return this.#indented('> ')
      case 'ul':
      case 'ol':
        return this.#list(name === 'ol' ? startOf(attributes['start']) : undefined)
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
    if (target === undefined || writer.isFlat) return () => {}
    writer.open('[')
    writer.flatten()
    return () => {
      writer.unflatten()
      writer.close(`](${target})`)
    }
  }

  #image({ alt = '', src }: Attributes): End {
    const target = linkTarget(src, this.#base)
    const text = alt.replace(/[\s[\]\\`*<]+/g, ' ').trim()
    if (text !== '') this.#writer.write(target === undefined ? text : `![${text}](${target})`)
    return () => {}
  }

  #indented(indent: string): End {
    const writer = this.#writer
    writer.break(2)
    writer.indent(indent)
    return () => {
      writer.outdent()
      writer.break(2)
    }
  }

  #list(next: number | undefined): End {
    const breaks = this.#lists.length === 0 ? 2 : 1
    const end = this.#block(breaks)
    this.#lists.push({ next })
    return () => {
      this.#lists.pop()
      end()
    }
  }

  #item(): End {
    const list = this.#lists.at(-1)
    const mark = list?.next === undefined ? '- ' : `${list.next++}. `
    const writer = this.#writer
    writer.break(1)
    if (writer.isFlat) return () => writer.break(1)
    writer.indent(' '.repeat(mark.length), mark)
    return () => {
      writer.outdent()
      writer.break(1)
    }
  }

  /** A table in a cell or in a link is text. */
  #tablePart(name: 'table' | 'tr' | 'td' | 'th'): End {
    const writer = this.#writer
    if (writer.isFlat) return this.#block(1)
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
    writer.flatten()
    return () => {
      writer.unflatten()
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

function startOf(start = ''): number {
  return /^\d{1,6}$/.test(start) ? Number(start) : 1
}
