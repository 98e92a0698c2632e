// How each limit was named at first, and where such a name is a name: a value, or a field of another shape, stays as it is.
import { describe, expect, it } from 'vitest'
import { withLimitNames } from '../src/versions/limit-names.ts'

const renames: Readonly<Record<string, string>> = {
  turnsMax: 'maxTurns',
  toolCallsMax: 'maxToolCalls',
  toolCallsPerTurnMax: 'maxToolCallsPerTurn',
  callsMaxByTool: 'maxCallsByTool',
  tokensMax: 'maxTotalTokens',
  inputTokensMax: 'maxTotalInputTokens',
  outputTokensMax: 'maxTotalOutputTokens',
  costMaxUsd: 'maxCostUsd',
  durationMaxMs: 'maxDurationMs',
  repeatsMax: 'maxRepeats',
  concurrencyMax: 'maxConcurrency',
  approvalMaxMs: 'maxApprovalMs',
  attemptsMax: 'maxAttempts',
  retryAfterMaxMs: 'maxRetryAfterMs',
  totalMaxMs: 'maxTotalMs',
  contextTokensMax: 'maxContextTokens',
  repairsMax: 'maxRepairs',
  webSearchesMax: 'maxWebSearches',
}
const old = Object.fromEntries(Object.keys(renames).map((name, place) => [name, place]))
const today = Object.fromEntries(Object.values(renames).map((name, place) => [name, place]))
const renamed = (body: object): unknown => withLimitNames(body as never)

describe('the first names of limits', () => {
  it.each(Object.entries(renames))('%s is %s today', (first, now) => {
    expect(renamed({ limit: first })).toEqual({ limit: now })
  })

  it('are fields of limits, of a retry, and of what a definition says', () => {
    expect(renamed({ limits: old, retry: old })).toEqual({ limits: today, retry: today })
    const definition = (names: object) => ({
      ...{ name: 'agent', ...names, summarizer: names, output: names, fallbacks: [names, names] },
      policy: { limits: names, retry: names, compaction: names, onLimit: 'ask' },
    })
    expect(renamed({ definition: definition(old) })).toEqual({ definition: definition(today) })
  })

  it('stay where they are no name of a limit', () => {
    for (const body of [
      { turnsMax: 1, other: old, note: 'turnsMax' },
      { limit: 'another' },
      { limit: ['turnsMax'] },
      { limits: { maxCallsByTool: { turnsMax: 1 } } },
      { definition: { other: old, policy: { other: old, tools: [old] }, output: { schema: old } } },
      ...[null, 7, 'turnsMax', [old]].flatMap((value) => [
        { limits: value },
        { retry: value },
        { definition: value },
        { definition: { summarizer: value, policy: value } },
        { definition: { policy: { limits: value } } },
      ]),
      { definition: { fallbacks: old } },
      { definition: { fallbacks: [null, 'turnsMax', [old]] } },
      {},
    ])
      expect(renamed(body)).toStrictEqual(body)
  })
})
