import type { Usage } from '@tallystick/core'
import type { Expected, Reading } from '../written/reading.ts'

const usage = (inputTokens: number, outputTokens: number): Usage => ({ inputTokens, outputTokens })

const recordings: readonly (Expected & { readonly file: string })[] = [
  {
    file: 'docs-tool-call-stream.ndjson',
    served: 'llama3.2',
    parts: [['tool_call']],
    calls: [['', 'get_weather', { city: 'Tokyo' }]],
    usage: usage(169, 15),
    stop: ['tool_use', 'stop'],
  },
  {
    file: 'error-mid-stream.ndjson',
    served: 'qwen3',
    parts: [['text', 5, ' Yes.']],
    calls: [],
    failure: ['server', true],
    failureWords: 'an error was encountered while running the model',
  },
  {
    file: 'length.ndjson',
    served: 'qwen3',
    parts: [['text', 11, 'Once upon a']],
    calls: [],
    usage: usage(169, 55),
    stop: ['max_tokens', 'length'],
  },
  {
    file: 'text-llama3.ndjson',
    served: 'llama3',
    parts: [['text', 212, 'Why did the OpenTelemetry agent go to therapy?', 'a smile to your face!)']],
    calls: [],
    usage: usage(17, 50),
    stop: ['end', 'stop'],
  },
  {
    file: 'text-phi3-tail.ndjson',
    served: 'phi3',
    parts: [['text', 20, ' these times of day.']],
    calls: [],
    usage: usage(10, 239),
    stop: ['end', 'stop'],
  },
  {
    file: 'thinking-parallel-tools.ndjson',
    served: 'qwen3',
    parts: [['reasoning', 26, 'The user wants two cities.'], ['tool_call'], ['tool_call']],
    calls: [
      ['call_a1b2c3d4', 'get_weather', { city: 'Tokyo' }],
      ['call_e5f6g7h8', 'get_weather', { city: 'Paris' }],
    ],
    usage: usage(169, 55),
    stop: ['tool_use', 'stop'],
  },
  {
    // A whole answer, as the server gives it to a request for no stream: one line that says all.
    file: 'tool-call-nonstream.json',
    served: 'llama3.1',
    parts: [
      ['text', 535, 'This is a simple example, but in a real-world', 'different units (e.g., Celsius).'],
    ],
    calls: [],
    usage: usage(44, 113),
    stop: ['end', 'stop'],
  },
]

/** Every recorded stream of Ollama, by what a person reads in it. */
export const ollamaReadings: readonly Reading[] = recordings.map((one) => ({ folder: 'ollama', ...one }))
