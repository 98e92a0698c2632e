import { describe, expect, it } from 'vitest'
import { openai } from '../src/openai.ts'
import { sseBytes } from './kit/bytes.ts'
import { foldResponse } from './kit/openai-fold.ts'
import {
  added,
  completed,
  counted,
  created,
  delta,
  functionCall,
  itemDone,
  message,
  reasoning,
} from './kit/openai-streams.ts'
import { recordedRun } from './kit/recorded-run.ts'
import { finished } from './kit/collect.ts'

const thought = 'The user asks for the weather, so I look.'
const plainItem = {
  ...{ type: 'reasoning', id: 'think-7', summary: [], status: 'completed' },
  content: [{ type: 'reasoning_text', text: thought }],
}
/** Reasoning in the open, as DeepSeek, vLLM, LM Studio and OpenRouter stream it. */
const plain = (item: object = plainItem) => [
  added(0, { type: 'reasoning', id: 'think-7', summary: [], content: [] }),
  delta('reasoning_text', 0, thought, { content_index: 0 }),
  itemDone(0, { ...item }),
]
const toolCall = functionCall(1, 'call_1', 'get_weather', '{"city":"Seoul"}')
const run = (first: readonly object[]) =>
  recordedRun(
    (baseURL) => openai('deepseek-test', { apiKey: 'k', baseURL, provider: 'deepseek' }),
    [
      { pieces: [sseBytes(counted(created(), first, toolCall, completed()))] },
      { pieces: [sseBytes(counted(created({ id: 'resp_2' }), message(0, 'It rains.'), completed()))] },
    ],
  )

describe('reasoning that a server shows in the open', () => {
  it('goes back as it came, with the call that it led to', async () => {
    const { server, result } = await run(plain())
    expect(result).toMatchObject({ reason: 'answered', text: 'It rains.' })
    expect(server.arrivals[1]!.body['input'].slice(1, 3)).toEqual([
      plainItem,
      {
        ...{ type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'get_weather' },
        ...{ arguments: '{"city":"Seoul"}', status: 'completed' },
      },
    ])
  })

  it('goes back as it streamed where the item leaves it out in the end', async () => {
    const { type, id, summary } = plainItem
    const { server } = await run(plain({ type, id, summary, content: [], encrypted_content: null }))
    expect(server.arrivals[1]!.body['input'][1]).toEqual({ type, id, summary, content: plainItem.content })
  })

  it('stays behind where only a summary of it was shown, and so do the ids', async () => {
    const { server } = await run(reasoning(0, undefined, 'I look.'))
    const [, called] = server.arrivals[1]!.body['input']
    expect(called).toMatchObject({ type: 'function_call', call_id: 'call_1' })
    expect(called).not.toHaveProperty('id')
  })

  it('goes back encrypted where it is, whatever streamed', () => {
    const item = { type: 'reasoning', id: 'rs_0', summary: [], encrypted_content: 'ZW5j' }
    const { signals } = foldResponse([created(), ...plain(item), ...message(1, 'Hi'), completed()])
    expect(finished(signals)?.parts[0]).toMatchObject({ text: thought, opaque: { data: { item } } })
    expect(finished(signals)?.parts[0]).not.toHaveProperty('opaque.data.item.content')
  })
})
