import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findKeys, createKnownSecrets } from '@tallystick/core/internal'
import { createRepeatedTexts } from '@tallystick/testkit'
import { formatPlainText } from '../../packages/core/src/machine/history.ts'
import { extractJson } from '../../packages/core/src/tools/tool-schema.ts'
import { SecretMask } from '../../packages/replay/src/secrets.ts'
import { formatFailureText } from '../../packages/providers/src/shared/failure.ts'
import { parseGlob } from '../../packages/tools/src/built-in/files/names.ts'
import { findLines } from '../../packages/tools/src/built-in/files/text.ts'
import { toMarkdown } from '../../packages/tools/src/built-in/http-fetch/markdown.ts'
import { toVisibleText } from '../../packages/tools/src/define/text.ts'
import { refuseUnseen } from '../../packages/tools/src/built-in/sql-query/sqlite-statement.ts'
import { effort } from '../testing/effort.ts'
import { type BlockCounter, blockCounter } from '../patterns/block-steps.ts'

const mask = new SecretMask()
/** Begins like the repeated texts, and ends as none of them. */
const known = createKnownSecrets([
  'aaaaaaaaaaaaaaaz',
  '%%%%%%%%%%%%%%%z',
  '{"a":{"a":{"a":z',
  '\n\n\n\n\n\n\n\nz',
])
const scans: readonly (readonly [string, (text: string) => unknown])[] = [
  ['the keys in a text', findKeys],
  ['the secrets that are known, in a text', (text) => known.spansIn(text)],
  ['the secrets in a text', (text) => mask.text(text)],
  ['the JSON of an answer', extractJson],
  ['the kind of a statement', refuseUnseen],
  ['the words of a failure', formatFailureText],
  ['the lines with a text', (text) => findLines(`${'a'.repeat(50)}b`, text.replaceAll('\n', 'a'), Infinity)],
  ['the output of a program', toVisibleText],
  ['the paths of a glob', parseGlob('*a*a*a*{a,*a}**/*a*b')],
  ['a page', (text) => toMarkdown(text, 'https://a.example/', Infinity)],
  [
    'the tags of a page',
    (text) => toMarkdown(text.replaceAll('a', '<a b=c>'), 'https://a.example/', Infinity),
  ],
  ['a history as plain text', (text) => formatPlainText([{ role: 'user', parts: [{ type: 'text', text }] }])],
]

/** The texts by their piece, which is the middle of their name. */
const byPiece = Map.groupBy(createRepeatedTexts(100), ({ name }) => (JSON.parse(name) as string[])[1])
const longByPiece = Map.groupBy(createRepeatedTexts(400), ({ name }) => (JSON.parse(name) as string[])[1])
/** All of them in a thorough run, and some of each kind in a quick one. */
const pieces = [...byPiece].filter((_piece, index) => index % effort({ quick: 12, thorough: 3 }) === 0)

let counter: BlockCounter
beforeAll(async () => {
  counter = await blockCounter()
})
afterAll(() => counter.stop())

describe('what scans text from outside by hand', () => {
  it.each(scans)('takes steps in proportion to its length: %s', async (_what, scan) => {
    const groups = pieces.flatMap(([piece = '', texts]) => [texts, longByPiece.get(piece) ?? []])
    const steps = await counter.stepsOf(groups.map((texts) => () => texts.forEach(({ text }) => scan(text))))
    const slow = pieces.flatMap(([piece], index) => {
      const [ofShort = 0, ofLong = 0] = steps.slice(2 * index)
      return ofLong > 6 * ofShort + 1_000 ? [`${JSON.stringify(piece)}: ${ofShort}, ${ofLong}`] : []
    })
    expect(slow).toEqual([])
  })

  it('is seen to take more where it does', async () => {
    const again = (text: string): void => {
      for (let place = 0; place < text.length; place++) known.spansIn(text.slice(place))
    }
    const texts = ['sk-a'.repeat(50), 'sk-a'.repeat(200)]
    const [short = 0, long = 0] = await counter.stepsOf(texts.map((text) => () => again(text)))
    expect(short).toBeGreaterThan(100)
    expect(long).toBeGreaterThan(10 * short)
  })
})
