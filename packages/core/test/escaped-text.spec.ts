import { joinText } from '@tallystick/core'
import type { AssistantPart, ResultPart } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { collectCitations } from '../src/events/content.ts'
import { shortenResult } from '../src/tools/tool-call.ts'
import { LedgerConflictError } from '../src/values/errors.ts'
import { findEndOfWords, toSmallLetters, mayBeAt } from '../src/values/secrets.ts'
import { showHidden, describeDifference, formatLegibly } from '../src/values/text.ts'

/** How much of a text the words take that it begins with; `undefined` where it does not begin with them. */
const taken = (words: string, text: string): string | undefined => {
  const end = findEndOfWords(words, text, 0)
  return end === undefined ? undefined : text.slice(0, end)
}

describe('words that are escaped', () => {
  it.each([
    ['&', '&amp;'],
    ['"', '&quot;'],
    ["'", '&apos;'],
    ['<', '&lt;'],
    ['>', '&gt;'],
    ['&', '&AMP;'],
    ['/', '&#47;'],
    ['/', '&#0000047;'],
    ['/', '&#x2f;'],
    ['/', '&#x2F;'],
    ['/', '&#X00002f;'],
    ['\uffff', '&#65535;'],
    ['/', '%2f'],
    ['/', '%2F'],
    ['/', '\\/'],
    ['"', '\\"'],
    ["'", "\\'"],
    ['\\', '\\\\'],
    ['/', '\\u002f'],
    ['/', '\\U002F'],
    ['/', '\\x2f'],
    ['k', '%4B'],
    ['k', '\\u004b'],
    ['%', '%'],
    ['%', '%25'],
    ['\\', '\\'],
    ['k', 'K'],
  ])('are found: %s written as %s', (character, written) => {
    expect(taken(character, written)).toBe(written)
    expect(taken(`a${character}b`, `a${written}b and more`)).toBe(`a${written}b`)
    expect(mayBeAt(character, `x${written}`, 1)).toBe(true)
  })

  it.each([
    ['/', '&#00000047;'],
    ['/', '&#x000002f;'],
    ['/', '&#47'],
    ['"', '&quots;'],
    ['/', '%2'],
    ['/', '%g2'],
    ['/', '\\u02f'],
    ['/', '\\x2'],
    ['/', ''],
    ['ä', 'Ä'],
    ['\uffff', '&#131071;'],
  ])('are not found: %s in %s', (character, text) => {
    expect(taken(character, text)).toBeUndefined()
    expect(taken(`a${character}b`, `a${text}b`)).toBeUndefined()
  })

  it.each(['\n', '\r\n', '\\n', '\\r\\n', '\n ', '\r\n\t', '\\n '])(
    'may be broken into lines between two characters: %j',
    (lineBreak) => {
      expect(taken('ab', `a${lineBreak}b`)).toBe(`a${lineBreak}b`)
      expect(taken('a/', `a${lineBreak}%2f`)).toBe(`a${lineBreak}%2f`)
      expect(taken('ab', `${lineBreak}ab`)).toBeUndefined()
      expect(taken('ab', `a${lineBreak}`)).toBeUndefined()
      expect(taken('ab', 'a')).toBeUndefined()
    },
  )

  it.each(['\r', '\n\n', '\n  ', ' ', '\\r', '\\t'])('are not found across anything else: %j', (between) => {
    expect(taken('ab', `a${between}b`)).toBeUndefined()
  })

  it('end at the farthest place where the text can be read in several ways', () => {
    expect(taken('%', '%25')).toBe('%25')
    expect(taken('\\', '\\\\')).toBe('\\\\')
    expect(taken('%2', '%25')).toBe('%2')
    expect(taken('%2', '%2525')).toBe('%252')
    expect(taken('\\n', 'x')).toBeUndefined()
    expect(taken('\\na', '\\na')).toBe('\\na')
  })

  it('are looked for at one place only, and all of them', () => {
    expect(findEndOfWords('ab', 'xab', 1)).toBe(3)
    expect(findEndOfWords('ab', 'xab', 0)).toBeUndefined()
    expect(findEndOfWords('abc', 'abd', 0)).toBeUndefined()
    expect(findEndOfWords('', 'a', 0)).toBe(0)
  })

  it('begin nowhere but at their first character or at an escape', () => {
    expect(['a', 'A', '%', '\\', '&'].map((text) => mayBeAt('a', text, 0))).toEqual(Array(5).fill(true))
    expect(['b', '', ' ', 'constructor'].map((text) => mayBeAt('a', text, 0))).toEqual(Array(4).fill(false))
    expect(mayBeAt('a', 'ab', 1)).toBe(false)
  })

  it('have letters of ASCII in small, and all others as they are', () => {
    expect(toSmallLetters('AZ[@az İÄ')).toBe('az[@az İÄ')
  })
})

it.each([
  ['a\u202Eb', 'a⟨U+202E⟩b', 'turns what follows around'],
  ['a\u3164b', 'a⟨U+3164⟩b', 'looks like nothing'],
  ['a\uD800b', 'a⟨U+D800⟩b', 'is half a character'],
  ['a\u0007b', 'a⟨U+0007⟩b', 'is obeyed by a terminal'],
  ['a\u{E0041}b', 'a⟨U+E0041⟩b', 'carries a message of its own'],
])('shows what a reader cannot see: %j as %s, which %s', (text, shown) => {
  expect(showHidden(text)).toBe(shown)
})

it('leaves lines, tabs, emoji and other scripts alone', () => {
  for (const text of ['a\n\tb', '❤\uFE0F', '日本語\u3000です', 'naïve café'])
    expect(showHidden(text)).toBe(text)
})

it('shows what only looks like a space, where that is asked for', () => {
  expect(showHidden('pay\u00A0100 now', { spaces: true })).toBe('pay⟨U+00A0⟩100 now')
})

const circle: { readonly name: string; self?: unknown } = { name: 'a' }
circle.self = circle
let deep: unknown = 'end'
for (let depth = 0; depth < 1_000; depth++) deep = [deep]

describe('formatLegibly', () => {
  it.each<[text: string, make: () => unknown]>([
    ['{"epoch":1,"seq":2}', () => ({ seq: 2, epoch: 1, gone: undefined })],
    ['{"events":[1,null,undefined],"seq":2n}', () => ({ seq: 2n, events: [1, null, undefined] })],
    ['undefined', () => undefined],
    ['NaN', () => Number.NaN],
    ['Symbol(seq)', () => Symbol('seq')],
    ['a function', () => () => 1],
    ['a Date of 5', () => new Date(5)],
    ['a Date of NaN', () => new Date('never')],
    ['a Map of [["a",{"b":1n}]]', () => new Map([['a', { b: 1n }]])],
    ['a Set of ["a"]', () => new Set(['a'])],
    ['a promise', () => Promise.resolve(1)],
    ['3 bytes', () => new Uint8Array(3)],
    ['RangeError: no disk', () => new RangeError('no disk')],
    [
      'LedgerConflictError: It was taken. (code ledger_conflict)',
      () => new LedgerConflictError('inbox', 'It was taken.'),
    ],
    ['{"name":"a","self":a circle}', () => circle],
    ['an object that cannot be read', () => new Proxy({}, { ownKeys: () => [1] as never })],
    ['{"seq":1}', () => Object.assign(Object.create(null) as object, { seq: 1 })],
  ])('shows %s', (text, make) => {
    expect(formatLegibly(make())).toBe(text)
  })

  it('ends, however deep and long the value is', () => {
    expect(formatLegibly(deep)).toBe(`${'['.repeat(30)}…${']'.repeat(30)}`)
    expect(formatLegibly('a'.repeat(10_000))).toBe(`"${'a'.repeat(299)} …`)
  })
})

describe('differenceOf', () => {
  it('shows two values from shortly before their first difference', () => {
    const same = 'a'.repeat(1_000)
    const difference = describeDifference({ text: `${same}b${same}` }, { text: `${same}c` })
    expect(difference?.found).toMatch(/^… a{60}ba{239} …$/)
    expect(difference?.expected).toMatch(/^… a{60}c"}$/)
  })

  it('takes JSON for the same that has its keys in another order, or fields without a value', () => {
    expect(describeDifference({ a: 1, b: 2 }, { b: 2, a: 1, c: undefined })).toBeUndefined()
    expect(describeDifference({ seq: 1n }, { seq: 1n })).toBeUndefined()
    expect(describeDifference({ seq: 1n }, { seq: 1 })).toEqual({
      found: '{"seq":1n}',
      expected: '{"seq":1}',
    })
    expect(describeDifference(undefined, { seq: 1 })).toEqual({ found: 'undefined', expected: '{"seq":1}' })
  })
})

describe('the text of parts', () => {
  it('is that of the text parts, put together', () => {
    const parts = [
      { type: 'text', text: 'It is ' },
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text' },
      { type: 'image' },
      { type: 'text', text: 'warm.' },
    ]
    expect(joinText(parts)).toBe('It is warm.')
    expect(joinText([])).toBe('')
  })

  it('has the citations of its parts, in their order', () => {
    const [one, two, three] = ['a', 'b', 'c'].map((title) => ({ title }))
    const parts: readonly AssistantPart[] = [
      { type: 'text', text: 'It is ', citations: [one!, two!] },
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'warm' },
      { type: 'text', text: '.', citations: [three!] },
    ]
    expect(collectCitations(parts)).toEqual([one, two, three])
    expect(collectCitations([])).toEqual([])
  })
})

// What a model is shown of a result that is too long: its beginning and its end, whole characters, and every image and file.

const text = (words: string): ResultPart => ({ type: 'text', text: words })
const image: ResultPart = { type: 'image', mediaType: 'image/png', data: 'QQ==' }
const show = (content: readonly ResultPart[], max: number | undefined, isReadable = false) =>
  shortenResult(content, { max, toolCallId: 'call_1' as never, isReadable })
const note = (count: number, length: number, from: number): string =>
  `\n[${count} of ${length} characters are left out here, from ${from} to ${from + count}. Ask for a smaller part if you need them.]\n`

describe('a result that is shown to a model', () => {
  it('is the same where its texts are short enough, or have no limit', () => {
    for (const content of [[], [image], [text('12345678')], [text('1234'), image, text('5678')]]) {
      expect(show(content, 8)).toBe(content)
      expect(show(content, undefined)).toBe(content)
    }
  })

  it('has three quarters of its characters from the beginning, and the rest from the end', () => {
    expect(show([text('123456789')], 8)).toEqual([text(`123456${note(1, 9, 6)}89`)])
    expect(show([text('123456789')], 5)).toEqual([text(`123${note(4, 9, 3)}89`)])
    expect(show([text('123456789')], 1)).toEqual([text(`${note(8, 9, 0)}9`)])
    expect(show([text('123456789')], 0)).toEqual([text(note(9, 9, 0))])
  })

  it('says how to read on where the agent has a tool for that', () => {
    expect(show([text('123456789')], 8, true)).toEqual([
      text(
        '123456\n[1 of 9 characters are left out here, from 6 to 7. Read on with read_result: {"call":"call_1","from":6}.]\n89',
      ),
    ])
  })

  it('keeps images and files, and names what is left out once, over several texts', () => {
    const content = [text('abcd'), image, text('efgh'), image, text('ijkl'), text('mnop')]
    expect(show(content, 8)).toEqual([
      ...[text('abcd'), image, text(`ef${note(8, 16, 6)}`), image],
      text('op'),
    ])
    expect(show([text('abcd'), text('efgh'), text('ijkl')], 5)).toEqual([
      ...[text(`abc${note(7, 12, 3)}`), text('kl')],
    ])
    expect(show([text('abc'), text('defg'), text('hi')], 4)).toEqual([
      ...[text('abc'), text(note(5, 9, 3)), text('i')],
    ])
  })

  it('cuts no character in two', () => {
    // Each of them is two units long.
    expect(show([text('💡💡💡💡')], 4)).toEqual([text(`💡${note(4, 8, 2)}💡`)])
    expect(show([text('a💡💡💡')], 4)).toEqual([text(`a💡${note(2, 7, 3)}💡`)])
    expect(show([text('💡bcdefg')], 2)).toEqual([text(`${note(6, 8, 0)}fg`)])
    expect(show([text('abcde💡')], 4)).toEqual([text(`abc${note(2, 7, 3)}💡`)])
    expect(show([text('a'), text('💡💡💡')], 4)).toEqual([...[text('a'), text(`💡${note(2, 7, 3)}💡`)]])
  })
})
