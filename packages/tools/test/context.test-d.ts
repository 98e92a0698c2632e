// Checked by the compiler and never run: each `@ts-expect-error` fails the build once its line compiles.
import { defineAgent, type Agent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { defineTool, type DefinedTool, type ToolContext, type ToolSpecification } from '@tallystick/tools'
import { expectTypeOf } from 'vitest'
import * as z from 'zod'

interface App {
  readonly user: string
}

const input = z.object({ city: z.string() })
const about = { name: 'look', description: 'Looks.', input, effect: 'read' } as const

// A tool says what it needs where its function does.
const mine = defineTool({
  ...about,
  execute: ({ city }, { context }: ToolContext<App>) => city + context.user,
})
expectTypeOf(mine).toEqualTypeOf<DefinedTool<'look', typeof input, App>>()
const asking = defineTool({
  ...about,
  execute: ({ city }, { context }: ToolContext<App>) => city + context.user,
  approval: ({ city }, { context }) => context.user !== city,
})
expectTypeOf(asking).toEqualTypeOf<DefinedTool<'look', typeof input, App>>()
expectTypeOf(defineTool({ ...about, execute: ({ city }) => city })).toEqualTypeOf<
  DefinedTool<'look', typeof input>
>()
// @ts-expect-error the context is missing
defineTool({ ...about, execute: (_given, { context }) => context.user })

const agent = defineAgent({ name: 'a', instructions: '', model: scriptedModel([]), tools: [mine] })
expectTypeOf(agent).toEqualTypeOf<Agent<string, App>>()

type Optional = Pick<ToolSpecification<typeof input>, 'approval' | 'reconcile' | 'recovery' | 'timeoutMs'>
export const unsaid: Optional = {
  ...{ approval: undefined, reconcile: undefined, recovery: undefined, timeoutMs: undefined },
}
