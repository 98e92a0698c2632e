// Checked by the compiler and never run: each `@ts-expect-error` fails the build once its line compiles.
import { defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import type { ResultPart } from '@tallystick/core/vocabulary'
import { RunChatTransport, type InferUIMessage, type InferUITools } from '@tallystick/server/client'
import { defineTool } from '@tallystick/tools'
import type { ChatInit, UIMessage } from 'ai'
import { expectTypeOf } from 'vitest'
import * as z from 'zod'

const pay = defineTool({
  name: 'pay',
  description: 'Pays a bill.',
  input: z.object({ usd: z.number(), due: z.string().transform((text) => new Date(text)) }),
  effect: 'write',
  execute: ({ usd, due }) => `${usd} paid, due ${due.getTime()}`,
})
const find = defineTool({
  name: 'find',
  description: 'Finds a bill.',
  input: { type: 'object', properties: {} },
  effect: 'read',
  execute: () => 'none',
})
const tools = [pay, find]
defineAgent({ name: 'cashier', instructions: '', model: scriptedModel([]), tools })

// The input is what the model writes, before a schema turns a text into a date.
expectTypeOf<InferUITools<typeof tools>['pay']>().toEqualTypeOf<{
  input: { usd: number; due: string }
  output: string | readonly ResultPart[]
}>()

type Message = InferUIMessage<typeof tools>
expectTypeOf<Message>().toExtend<UIMessage>()
export const chat: ChatInit<Message> = { transport: new RunChatTransport<Message>({ api: '/chat/cashier' }) }

export function shown(part: Message['parts'][number]): unknown {
  if (part.type === 'text') return part.text
  if (part.type !== 'dynamic-tool') return undefined
  expectTypeOf(part.toolName).toEqualTypeOf<'pay' | 'find'>()
  if (part.toolName !== 'pay') return part.toolCallId
  // @ts-expect-error the input is still arriving, or is not one that the tool takes
  if (part.state === 'input-streaming' || part.state === 'output-error') return part.input.usd
  if (part.state === 'output-available')
    expectTypeOf(part.output).toEqualTypeOf<string | readonly ResultPart[]>()
  if (part.state === 'approval-requested') expectTypeOf(part.approval.id).toBeString()
  return expectTypeOf(part.input).toEqualTypeOf<{ usd: number; due: string }>()
}
