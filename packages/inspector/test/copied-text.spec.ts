import { expect, it } from 'vitest'
import { cutToChange } from '../src/page/ui/changed-lines.ts'
import { formatCommand, formatConditions } from '../src/page/ui/command.ts'
import { fence } from '../src/page/ui/fence.ts'

it('writes a command that a shell takes word by word, with the name of the ledger where it is a file', () => {
  expect(formatCommand(['show', 'LEDGER', 'a1'], 'runs.db')).toBe('tallystick show runs.db a1')
  expect(formatCommand(['show', 'LEDGER'], "it's $(rm).db")).toBe(
    String.raw`tallystick show 'it'\''s $(rm).db'`,
  )
  for (const title of ['postgres', 'folder', 'runs.jsonl', undefined]) {
    expect(formatCommand(['show', 'LEDGER'], title)).toBe('tallystick show LEDGER')
  }
})

it('writes the conditions that choose the runs of a query', () => {
  const query = { agent: '-a b', feedbackBy: 'ann', maxScore: '0.5', startedUntil: 0, sessionId: 's' }
  expect(
    formatCommand(['list', 'LEDGER', ...formatConditions({ ...query, status: ['interrupted'] })], ''),
  ).toBe(
    "tallystick list LEDGER --where 'agent=-a b' --where by=ann --where session=s --where status=unfinished " +
      "--where 'score<=0.5' --where 'started<1970-01-01T00:00:00.000Z'",
  )
  expect(formatConditions({ status: ['done', 'failed'], roots: true, limit: 60 })).toEqual([])
})

it('fences a text with more backticks than it holds', () => {
  expect(fence('a')).toBe('```\na\n```')
  expect(fence('a\n````\nb')).toBe('`````\na\n````\nb\n`````')
})

it('cuts two texts to the lines between their first and their last difference', () => {
  expect(cutToChange('a\nb\nc', 'a\nx\ny\nc')).toEqual({ before: 'b', after: 'x\ny' })
  expect(cutToChange('a\na', 'a\na\na')).toEqual({ before: '', after: 'a' })
  expect(cutToChange('same', 'same')).toEqual({ before: '', after: '' })
})
