import { DefaultChatTransport, type UIMessage } from 'ai'
import { expect, it } from 'vitest'
import * as z from 'zod'
import { defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { answerOf, openOffice } from './kit/office.ts'
import { PageChat } from './kit/page-chat.ts'

const plan = z.object({ city: z.string(), sights: z.array(z.string()) })

/** The partial answers among the events of a stream. */
function sentIn(body: string, isIt: (chunk: Record<string, unknown>) => boolean): readonly unknown[] {
  const chunks = [...body.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json))
  return chunks.filter(isIt).map((chunk) => chunk.data ?? chunk.value)
}

it('a page of the AI SDK and a client of AG-UI get the answer by its schema while it is written', async () => {
  const text = '{"city":"Seoul","sights":["Gyeongbokgung","Bukchon"]}'
  const texts = [{ text: '{"city":"Busan"}' }, { text }, { text }]
  const model = scriptedModel(texts)
  const agent = defineAgent({ name: 'guide', instructions: 'Plan.', model, output: plan })
  const list = defineAgent({
    ...{ name: 'list', instructions: 'List.', output: z.array(z.string()) },
    model: scriptedModel([{ text: '{"answer":["a","b"]}' }]),
  })
  const office = await openOffice({ agents: [agent, list] })
  const transport = new DefaultChatTransport({
    api: `${office.listening.url}/chat/guide`,
    headers: { authorization: 'Bearer ada' },
  })
  const chat = new PageChat('c1', transport)
  await chat.sendMessage({ text: 'Seoul?' })
  const output = { city: 'Seoul', sights: ['Gyeongbokgung', 'Bukchon'] }
  const dataOf = (message: UIMessage | undefined) =>
    message?.parts.flatMap((part) => (part.type === 'data-output' ? [part.data] : []))
  // What did not fit is gone from the page; what it has is what a page has that comes later.
  expect(dataOf(chat.messages[1])).toEqual([output])
  const later = await answerOf(await office.send('/chat/guide/c1'))
  expect((later['messages'] as UIMessage[])[1]?.parts).toEqual(chat.messages[1]?.parts)

  const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'List.' }] }]
  const listed = await (await office.send('/chat/list', 'ada', { id: 'c2', messages })).text()
  const growing = sentIn(listed, ({ type }) => type === 'data-output')
  expect(growing.length).toBeGreaterThan(1)
  expect(growing.at(-1)).toEqual(['a', 'b'])
  expect(growing.every(Array.isArray)).toBe(true)

  const asked = { threadId: 't', runId: 'r', state: {}, tools: [], context: [], forwardedProps: {} }
  const said = { ...asked, messages: [{ id: 'u', role: 'user', content: 'Seoul?' }] }
  const streamed = await (await office.send('/ag-ui/guide', 'ada', said)).text()
  const custom = sentIn(streamed, ({ type, name }) => type === 'CUSTOM' && name === 'output')
  expect(custom.at(-1)).toEqual(output)
})
