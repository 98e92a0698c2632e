import type { AnyContext } from '../events/agent-definition.ts'
import {
  requireAnswer,
  anyText,
  fields,
  filledText,
  functionOr,
  listOf,
  maybe,
  oneOf,
  plainFunction,
  requireOptions,
  valueThat,
} from '../values/option.ts'
import type { OutputPart, OutputTransform, OutputWriter } from './output.ts'

/** The unit that a transform gets at once: each piece as it comes, whole lines, whole sentences, or a whole part of the reply. */
export const outputUnits = ['piece', 'line', 'sentence', 'part'] as const
export type OutputUnit = (typeof outputUnits)[number]

const kinds = ['text', 'reasoning'] as const
type Kind = (typeof kinds)[number]

interface Named {
  /** Names the transform in the ledger. */
  readonly name: string
  /** Which texts it changes; both where not given. */
  readonly kinds?: readonly Kind[] | undefined
}

/** Changes a reply unit by unit. */
export interface OutputTransformOptions<Context = AnyContext> extends Named {
  /** Default: `sentence`. */
  readonly unit?: OutputUnit | undefined
  /** The most characters to hold back; a longer unit is passed on in several texts. Default: 4,096. */
  readonly maxChars?: number | undefined
  /** Returns the text to show instead; `''` shows nothing. Pure, and not async. */
  readonly show: (text: string, part: OutputPart<Context>) => string
}

/** Replaces what a pattern matches. */
export interface OutputMaskOptions<Context = AnyContext> extends Named {
  /** A pattern with the flag `g`. */
  readonly pattern: RegExp
  /**
   * The most characters of a match, including those after it that the pattern looks at, from 1 to 65,536: that many are
   * held back. The beginning of a longer match may be shown.
   */
  readonly window: number
  /** The text that replaces each match. */
  readonly replacement: string | ((match: string, part: OutputPart<Context>) => string)
}

/** The most characters that a transform may hold back. */
const MAX_CHARS = 65_536
const DEFAULT_CHARS = 4_096

const held = valueThat(
  `a whole number of characters from 1 to ${MAX_CHARS}`,
  (value) => Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= MAX_CHARS,
)
const named = { name: filledText, kinds: maybe(listOf(oneOf(kinds))) } as const
const transformOptions = fields<OutputTransformOptions>(
  { ...named, unit: maybe(oneOf(outputUnits)), maxChars: maybe(held), show: plainFunction },
  { transform: 'show', by: 'unit' },
)
const maskOptions = fields<OutputMaskOptions>({
  ...named,
  pattern: valueThat(
    'a RegExp with the flag g and without y, which finds every match',
    (value) => value instanceof RegExp && value.global && !value.sticky,
  ),
  window: held,
  replacement: functionOr(anyText),
})

/**
 * Returns a transform for `outputStream` that changes replies unit by unit, by sentences if not said otherwise. What a unit
 * misses is held back until it comes, at most `maxChars` characters of it. Throws a `ConfigurationError` for options that
 * cannot work.
 */
export function outputTransform<Context = AnyContext>(
  options: OutputTransformOptions<Context>,
): OutputTransform<Context> {
  requireOptions('outputTransform', transformOptions, options)
  const { name, unit = 'sentence', maxChars = DEFAULT_CHARS, show } = options
  return {
    name,
    begin: beginFor(
      options,
      (part) =>
        new UnitWriter({
          unit,
          maxChars,
          show: (text) => requireAnswer(`show of outputTransform (${name})`, () => show(text, part), anyText),
        }),
    ),
  }
}

/**
 * Returns a transform for `outputStream` that replaces what a pattern matches, wherever the pieces of a reply part it. The
 * last `window` characters are held back until more comes. Throws a `ConfigurationError` for options that cannot work.
 */
export function outputMask<Context = AnyContext>(
  options: OutputMaskOptions<Context>,
): OutputTransform<Context> {
  requireOptions('outputMask', maskOptions, options)
  const { name, pattern, window, replacement } = options
  return {
    name,
    begin: beginFor(options, (part) => {
      const replace = (match: string): string =>
        typeof replacement === 'function'
          ? requireAnswer(`replacement of outputMask (${name})`, () => replacement(match, part), anyText)
          : replacement
      return new MaskWriter({ pattern, window, replace })
    }),
  }
}

const asItIs: OutputWriter = { write: (text) => text, end: () => '' }

function beginFor<Context>(
  { kinds: changed = kinds }: Named,
  begin: (part: OutputPart<Context>) => OutputWriter,
): OutputTransform<Context>['begin'] {
  return (part) => (changed.includes(part.kind) ? begin(part) : asItIs)
}

class UnitWriter implements OutputWriter {
  readonly #options: { unit: OutputUnit; maxChars: number; show: (text: string) => string }
  #held = ''

  constructor(options: { unit: OutputUnit; maxChars: number; show: (text: string) => string }) {
    this.#options = options
  }

  write(text: string): string {
    const { unit, maxChars, show } = this.#options
    // The held text contains no end of a unit, except that the next character may turn its last one into an end.
    let from = Math.max(0, this.#held.length - 1)
    let rest = this.#held + text
    let shown = ''
    for (;;) {
      const end = findUnitEnd(unit, rest, from) ?? (rest.length > maxChars ? maxChars : undefined)
      if (end === undefined) break
      const cut = findCharacterEnd(rest, Math.min(end, maxChars))
      shown += show(rest.slice(0, cut))
      rest = rest.slice(cut)
      from = 0
    }
    this.#held = rest
    return shown
  }

  end(): string {
    const rest = this.#held
    this.#held = ''
    return rest === '' ? '' : this.#options.show(rest)
  }
}

class MaskWriter implements OutputWriter {
  readonly #options: { pattern: RegExp; window: number; replace: (match: string) => string }
  /** The text before the one that is held back, for patterns that look at it. */
  #before = ''
  #held = ''

  constructor(options: { pattern: RegExp; window: number; replace: (match: string) => string }) {
    this.#options = options
  }

  write(text: string): string {
    this.#held += text
    // A match that begins before this place is whole: it has `window` characters at most.
    const place = this.#held.length - this.#options.window
    return place > 0 ? this.#upTo(findCharacterEnd(this.#held, place, 0)) : ''
  }

  end(): string {
    return this.#upTo(this.#held.length)
  }

  /** Shows what is held back up to a place, or to the end of a match that begins before it. */
  #upTo(place: number): string {
    const { pattern, window, replace } = this.#options
    const held = this.#held
    const from = this.#before.length
    let shown = ''
    let at = 0
    // The iterator has a copy of the pattern, which begins at this place.
    const { lastIndex } = pattern
    pattern.lastIndex = from
    const matches = (this.#before + held).matchAll(pattern)
    pattern.lastIndex = lastIndex
    for (const { index, 0: match } of matches) {
      if (index - from >= place) break
      if (match === '') continue
      shown += held.slice(at, index - from) + replace(match)
      at = index - from + match.length
    }
    const end = Math.max(at, place)
    this.#before = (this.#before + held.slice(0, end)).slice(-window)
    this.#held = held.slice(end)
    return shown + held.slice(at, end)
  }
}

/** Where the first unit of a text ends that does not end before `from`; `undefined` if it may continue. */
function findUnitEnd(unit: OutputUnit, text: string, from: number): number | undefined {
  switch (unit) {
    case 'piece': {
      const end = isHighSurrogate(text, text.length - 1) ? text.length - 1 : text.length
      return end > 0 ? end : undefined
    }
    case 'line': {
      const end = text.indexOf('\n', from)
      return end < 0 ? undefined : end + 1
    }
    case 'sentence':
      return findSentenceEnd(text, from)
    case 'part':
      return undefined
  }
}

/** Characters after which a sentence ends where a space follows, and those after which it ends in any case. */
const mayEnd: ReadonlySet<string> = new Set(['.', '!', '?', '…', '"', "'", ')', ']', '”', '’', '»'])
const ends: ReadonlySet<string> = new Set(['\n', '。', '！', '？', '．'])
const spaces: ReadonlySet<string> = new Set([' ', '\t', '\r', '\u00a0', '\u3000'])

function findSentenceEnd(text: string, from: number): number | undefined {
  for (let at = from; at < text.length; at++) {
    const character = text[at] as string
    if (ends.has(character)) return at + 1
    if (mayEnd.has(character) && spaces.has(text[at + 1] ?? '')) return at + 2
  }
  return undefined
}

/** A place at or before `end` that parts no character in two; at least `least`, where one character is longer. */
function findCharacterEnd(text: string, end: number, least = 1): number {
  if (end >= text.length || !isHighSurrogate(text, end - 1) || !isLowSurrogate(text, end)) return end
  return end - 1 >= least ? end - 1 : end + 1
}

function isHighSurrogate(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code >= 0xd8_00 && code <= 0xdb_ff
}

function isLowSurrogate(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code >= 0xdc_00 && code <= 0xdf_ff
}
