// Checked by the compiler and never run: each `@ts-expect-error` fails the build once its line compiles.
import type { Tool } from '@tallystick/core'
import { defineTool, settledLater } from '@tallystick/tools'
import { expectTypeOf } from 'vitest'
import * as z from 'zod'

const about = { name: 'build', description: 'Builds.', input: z.object({}), effect: 'read' } as const
const output = z.object({ state: z.enum(['passed', 'failed']), lines: z.array(z.string()).default([]) })

// What `execute` returns fits the schema, at once or later; what the schema fills in may be left out.
defineTool({ ...about, output, execute: () => ({ state: 'passed' }) })
defineTool({ ...about, output, execute: async () => ({ state: 'failed', lines: ['No such file.'] }) })
defineTool({ ...about, output, execute: (_input, { progress }) => (progress(1), { state: 'passed' }) })
defineTool({ ...about, output, execute: () => settledLater({ externalId: 'job 7' }) })
defineTool({ ...about, output, execute: async () => settledLater({ externalId: 'job 7' }) })
// @ts-expect-error no such state
defineTool({ ...about, output, execute: () => ({ state: 'skipped' }) })
// @ts-expect-error no such state
defineTool({ ...about, output, execute: async () => ({ state: 'skipped' }) })
// @ts-expect-error the state is missing
defineTool({ ...about, output, execute: () => ({ lines: [] }) })
// @ts-expect-error a text is not a state
defineTool({ ...about, output, execute: () => 'passed' })
// @ts-expect-error nothing is not a state
defineTool({ ...about, output, execute: () => {} })

// `toModel` gets the parsed value, wherever it stands.
defineTool({
  ...about,
  output,
  toModel: (result) => {
    expectTypeOf(result).toEqualTypeOf<{ state: 'passed' | 'failed'; lines: string[] }>()
    return result.state
  },
  execute: () => ({ state: 'passed' }),
})
// @ts-expect-error no such field
defineTool({ ...about, output, execute: () => ({ state: 'passed' }), toModel: (result) => result.status })

// What a schema leaves open is the author's.
defineTool({ ...about, output: z.unknown(), execute: () => new Map() })
defineTool({ ...about, execute: () => new Date(), toModel: (date: Date) => date.toISOString() })
defineTool({ ...about, execute: () => {} })
defineTool({ ...about, execute: async (): Promise<unknown> => undefined })

// A JSON Schema says nothing to the compiler.
const described = defineTool({
  ...about,
  output: { type: 'object' },
  execute: () => ({ rows: 3 }),
  toModel: ({ rows }) => rows,
})
expectTypeOf(described).toExtend<Tool<unknown>>()
