// The server that the conformance suite of MCP asks: `serveMcp` with the tools that the suite expects. Prints its URL, and ends
// when its standard input does.
import { defineTool, file, image } from '@tallystick/tools'
import { serveMcp } from '@tallystick/tools/mcp'

const input = { type: 'object' } as const
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
