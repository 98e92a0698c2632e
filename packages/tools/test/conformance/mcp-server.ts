// The server that the conformance suite of MCP asks: `serveMcp` with the tools that the suite expects. Prints its URL, and ends
// when its standard input does.
import { defineTool, file, image } from '@tallystick/tools'
import { serveMcp } from '@tallystick/tools/mcp'

const input = { type: 'object' } as const
const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** The schema whose keywords have to arrive as they are. */
const schema2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
} as const
const tool = (
  name: string,
  execute: Parameters<typeof defineTool>[0]['execute'],
): ReturnType<typeof defineTool> =>
  defineTool({
    name,
    description: `Answers as the suite expects of ${name}.`,
    input,
    effect: 'read',
    execute,
  })

/** A picture of one dot, and a sound of no length. */
const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const silence = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA='

await using server = await serveMcp(
  [
    tool('test_simple_text', () => 'This is a simple text response for testing.'),
    tool('test_image_content', () => image({ mediaType: 'image/png', data: dot })),
    tool('test_audio_content', () => file({ mediaType: 'audio/wav', data: silence })),
    tool('test_embedded_resource', () =>
      file({
        mediaType: 'text/plain',
        name: 'embedded.txt',
        data: base64('This is an embedded resource content.'),
      }),
    ),
    tool('test_multiple_content_types', () => [
      'Multiple content types test:',
      image({ mediaType: 'image/png', data: dot }),
      file({
        mediaType: 'application/json',
        name: 'mixed.json',
        data: base64('{"test":"data","value":123}'),
      }),
    ]),
    defineTool({
      name: 'json_schema_2020_12_tool',
      description: 'Has an input whose schema uses the keywords of the newest draft.',
      input: schema2020,
      effect: 'read',
      execute: () => 'ok',
    }),
    tool('test_error_handling', () => {
      throw new Error('This tool intentionally returns an error for testing')
    }),
    tool('test_tool_with_progress', (_input, { progress }) => {
      for (const done of [0, 50, 100]) progress({ progress: done, total: 100 })
      return 'done'
    }),
  ],
  { http: {} },
)
console.log(server.url)
await new Promise<void>((resolve) => void process.stdin.resume().once('end', resolve))
