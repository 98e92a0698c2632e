import { z } from 'zod'
import { Refusal } from './refusal.ts'
import type { MessagesRequest } from './wire.ts'

const text = z.looseObject({
  type: z.literal('text'),
  text: z.string().min(1, 'text content blocks must be non-empty'),
})
const identifier = z.string().regex(/^[a-zA-Z0-9_-]+$/, "String should match pattern '^[a-zA-Z0-9_-]+$'")
const toolName = z
  .string()
  .regex(/^[a-zA-Z0-9_-]{1,128}$/, "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")
const toolUse = z.looseObject({
  type: z.literal('tool_use'),
  id: identifier,
  name: toolName,
  input: z.record(z.string(), z.unknown()),
})

/** Content given as a string is one text block. */
const asBlocks = (given: unknown): unknown =>
  typeof given === 'string' ? [{ type: 'text', text: given }] : given

const media = z.looseObject({
  type: z.enum(['image', 'document']),
  source: z.looseObject({ type: z.string() }),
})
const toolResult = z.looseObject({
  type: z.literal('tool_result'),
  tool_use_id: identifier,
  is_error: z.boolean().optional(),
  content: z.preprocess(asBlocks, z.array(z.discriminatedUnion('type', [text, media])).optional()),
})
const thinking = z.looseObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() })
const redacted = z.looseObject({ type: z.literal('redacted_thinking'), data: z.string() })

const message = z.discriminatedUnion('role', [
  z.strictObject({
    role: z.literal('user'),
    content: z.preprocess(asBlocks, z.array(z.discriminatedUnion('type', [text, media, toolResult]))),
  }),
  z.strictObject({
    role: z.literal('assistant'),
    content: z.preprocess(
      asBlocks,
      z.array(z.discriminatedUnion('type', [text, toolUse, thinking, redacted])),
    ),
  }),
])

const tool = z.looseObject({
  name: toolName,
  description: z.string().optional(),
  input_schema: z.looseObject({ type: z.literal('object') }),
})
const parallel = { disable_parallel_tool_use: z.boolean().optional() }
const toolChoice = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('auto'), ...parallel }),
  z.strictObject({ type: z.literal('any'), ...parallel }),
  z.strictObject({ type: z.literal('tool'), name: z.string(), ...parallel }),
  z.strictObject({ type: z.literal('none') }),
])

// Everything else is refused, including `temperature` and its like, which the vendor's current version no longer takes.
const messagesRequest: z.ZodType<MessagesRequest> = z.strictObject({
  model: z.string().min(1),
  max_tokens: z.int().min(1),
  messages: z.array(message).min(1, 'at least one message is required'),
  system: z.union([z.string(), z.array(text)]).optional(),
  tools: z.array(tool).optional(),
  tool_choice: toolChoice.optional(),
  stream: z.boolean().optional(),
  stop_sequences: z.array(z.string()).optional(),
  metadata: z.looseObject({}).optional(),
  thinking: z.looseObject({ type: z.string() }).optional(),
  output_config: z.looseObject({}).optional(),
  cache_control: z.looseObject({ type: z.literal('ephemeral') }).optional(),
  service_tier: z.enum(['auto', 'standard_only']).optional(),
})

/** Reads the body of a `POST /v1/messages`. Throws a `Refusal` that names the first invalid place. */
export function parseRequest(body: string): MessagesRequest {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    throw new Refusal('invalid_request_error', 'The request body is not valid JSON.')
  }
  const parsed = messagesRequest.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  if (issue?.code === 'unrecognized_keys') {
    throw new Refusal(
      'invalid_request_error',
      `${[...issue.path, issue.keys[0]].join('.')}: Extra inputs are not permitted`,
    )
  }
  throw new Refusal(
    'invalid_request_error',
    `${issue?.path.join('.') || 'body'}: ${issue?.message ?? 'Invalid input'}`,
  )
}
