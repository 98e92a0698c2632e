import type { Message, ModelRequest } from '@tallystick/core'
import type { AssistantPart, Opaque } from '@tallystick/core/vocabulary'
import { resolveQuirks } from '../../src/openai/options.ts'
import {
  renderRequest as renderChat,
  type RenderSettings as ChatSettings,
} from '../../src/openai/chat-request.ts'
import { type RenderSettings, renderRequest } from '../../src/openai/responses-request.ts'
import type { OpenAIChatQuirks, OpenAIChatServer } from '../../src/openai.ts'
import { request } from './collect.ts'
import type { Loose } from './loose.ts'
import { carriedAs } from './openai-fold.ts'
import { ownModels } from './openai-transcripts.ts'

const common = {
  modelId: 'gpt-test',
  provider: 'openai',
  strictTools: false,
  customTools: {},
  toolFields: {},
  warn: () => {},
}

/** How requests are made over either wire where a test says nothing else. */
export const responsesSettings: RenderSettings = {
  ...common,
  state: 'none',
  providerTools: [],
  approvalTool: 'mcp_approval',
  background: false,
  nativeTools: {},
}
export const chatSettings: ChatSettings = { ...common, quirks: resolveQuirks('openai', undefined) }

/** The body that the Responses wire is sent for a conversation. */
export function responsesBody(
  messages: readonly Message[],
  given: Partial<RenderSettings> = {},
  more: Partial<ModelRequest> = {},
): Loose {
  const settings = { ...responsesSettings, ...given }
  return renderRequest({ ...request, messages, ...more }, settings).body
}

/** What a test says of how requests are made over the Chat Completions wire. */
export type ChatGiven = Partial<ChatSettings> & {
  readonly server?: OpenAIChatServer
  readonly ways?: OpenAIChatQuirks
}

/** The body that the Chat Completions wire is sent for a conversation. */
export function chatBody(
  messages: readonly Message[],
  given: ChatGiven = {},
  more: Partial<ModelRequest> = {},
): Loose {
  const { server = 'openai', ways, ...rest } = given
  const settings = { ...chatSettings, quirks: resolveQuirks(server, ways), ...rest }
  return renderChat({ ...request, messages, ...more }, settings).body
}

/** A reply of a model of the wire, which ended. */
export const replyOver =
  (wire: keyof typeof ownModels) =>
  (parts: readonly AssistantPart[], more: object = {}): Message => ({
    role: 'assistant',
    parts,
    model: ownModels[wire],
    stopReason: 'end',
    partial: false,
    ...more,
  })

/** A part of a reply that is text. */
export function text(words: string, more: object = {}): AssistantPart {
  return { type: 'text', text: words, ...more }
}

/** The part of a reply that the Responses wire needs back: an item, and its place. */
export function kept(item: object, at: number, more: object = {}): { readonly opaque: Opaque } {
  return { opaque: carriedAs('responses', { item, at, ...more }) }
}
