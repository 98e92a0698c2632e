import { expect, it } from 'vitest'
import { hostileTexts } from '@tallystick/testkit'
import { createFailure } from '../src/report/failure.ts'

it('a failure shows what a text hides, and keeps its lines', () => {
  const texts = ['a\u001B[2Jb', 'a\u202Eb', 'a\u3164b', 'a\uFE0Fb', 'a\uD800b', 'a\u2028b']
  const { message } = createFailure({
    ...{ law: 'it holds', subject: 'tool', what: 'one\ntwo' },
    page: { title: 'A record', lines: [...texts, ...hostileTexts.map(({ text }) => text)].slice(0, 20) },
  })
  expect(message).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u)
  for (const shown of ['a\\u001b[2Jb', 'a\\u3164b', 'a\\ufe0fb', 'a\\ud800b'])
    expect(message).toContain(shown)
  expect(message).toContain('one\ntwo')
})
