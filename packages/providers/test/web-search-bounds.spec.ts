// What adapters say of the web searches that the vendor may run within one call, by what their options bound.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { anthropic, type AnthropicOptions } from '../src/anthropic.ts'
import { openai, type OpenAIOptions } from '../src/openai.ts'
import { recordModel } from '../src/recording.ts'
import { sent } from './kit/anthropic-sent.ts'
import { user } from './kit/history.ts'
import { responsesBody as body } from './kit/openai-requests.ts'

const search = { type: 'web_search_20260318', name: 'web_search' }

describe('maxWebSearches', () => {
  it.each<[string, AnthropicOptions, number | 'unbounded' | undefined]>([
    ['no tools', {}, undefined],
    ['a tool that searches nothing', { providerTools: [{ type: 'web_fetch_20260318' }] }, undefined],
    ['a search', { providerTools: [search] }, 'unbounded'],
    ['a bounded search', { providerTools: [{ ...search, max_uses: 3 }] }, 3],
    ['a bound that is not a count', { providerTools: [{ ...search, max_uses: -1 }] }, 'unbounded'],
    [
      'two of them',
      {
        providerTools: [
          { ...search, max_uses: 3 },
          { ...search, max_uses: 2 },
        ],
      },
      5,
    ],
    ['one without a bound', { providerTools: [{ ...search, max_uses: 3 }, search] }, 'unbounded'],
    ['tools in the body', { extraBody: { tools: [{ ...search, max_uses: 2 }] } }, 2],
    ['tools that others replace', { providerTools: [search], extraBody: { tools: [] } }, undefined],
  ])('of anthropic with %s', (_what, options, bound) => {
    expect(anthropic('claude-sonnet-5', options).maxWebSearches).toBe(bound)
  })

  const bounded = { max_tool_calls: 4 }
  it.each<[string, OpenAIOptions, number | 'unbounded' | undefined]>([
    ['no tools', { extraBody: bounded }, undefined],
    ['a tool that searches files', { providerTools: [{ type: 'file_search' }] }, undefined],
    ['a search', { providerTools: [{ type: 'web_search' }] }, 'unbounded'],
    ['a bounded search', { providerTools: [{ type: 'web_search_preview' }], extraBody: bounded }, 4],
    ['tools in the body', { extraBody: { ...bounded, tools: [{ type: 'web_search' }] } }, 4],
  ])('of openai with %s', (_what, options, bound) => {
    expect(openai('gpt-6', options).maxWebSearches).toBe(bound)
  })

  it('stays on a model that is recorded', () => {
    const folder = mkdtempSync(join(tmpdir(), 'bounds-'))
    try {
      const model = anthropic('claude-sonnet-5', { providerTools: [{ ...search, max_uses: 3 }] })
      expect(recordModel(model, join(folder, 'calls.jsonl')).maxWebSearches).toBe(3)
      expect(recordModel(anthropic('claude-sonnet-5'), join(folder, 'calls.jsonl'))).not.toHaveProperty(
        'maxWebSearches',
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('is nothing in a call that allows no tool: the request says so to the vendor', async () => {
    const asked = body(
      [user('Hello')],
      { providerTools: [{ type: 'web_search' }] },
      { toolChoice: { type: 'none' } },
    )
    expect(asked.tool_choice).toBe('none')
    const { body: posted } = await sent({ providerTools: [search] }, { toolChoice: { type: 'none' } })
    expect(posted['tool_choice']).toEqual({ type: 'none' })
  })
})
