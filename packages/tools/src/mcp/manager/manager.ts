import type { Tool } from '@tallystick/core'
import type { Json, JsonObject, ResultPart } from '@tallystick/core/vocabulary'
import type { Observable } from 'rxjs'
import type { ConnectionState } from '../connection/connection.ts'
import type { ToolChanges } from '../listing/tool-changes.ts'

/** The status of a server. */
export interface McpServerStatus {
  readonly name: string
  readonly state: ConnectionState
  /** `stdio`, `http` or `sse`, while it is connected. */
  readonly transport?: 'stdio' | 'http' | 'sse'
  /** What the server calls itself. */
  readonly server?: { readonly name: string; readonly version: string }
  /** The revision of the protocol that is spoken, such as `2025-11-25`. */
  readonly protocolVersion?: string
  /** How many tools it offers. */
  readonly tools: number
  /**
   * Why the server cannot be used; and which of its tools are left out, and why. Without secrets and control
   * characters.
   */
  readonly faults: readonly string[]
}

/** Options of a call that no agent makes. */
export interface McpCallOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (data: Json) => void
}

/** A resource or a template of resources, as a server lists it. */
export interface McpResource {
  /** Of a template, its pattern, such as `file:///{path}`. */
  readonly uri: string
  readonly isTemplate: boolean
  readonly name: string
  readonly description?: string
  readonly mimeType?: string
}

/** A prompt, as a server lists it. */
export interface McpPrompt {
  readonly name: string
  readonly description?: string
  readonly arguments: readonly {
    readonly name: string
    readonly description?: string
    readonly required: boolean
  }[]
}

/** A prompt with its arguments filled in. */
export interface McpPromptMessages {
  readonly description?: string
  readonly messages: readonly {
    readonly role: 'user' | 'assistant'
    readonly content: readonly ResultPart[]
  }[]
}

/** MCP servers that run, and their tools. */
export interface McpManager {
  /** The tools of all servers, as listed now. When a lost server is connected again, so are its tools. */
  readonly tools: readonly Tool[]
  readonly servers: readonly McpServerStatus[]
  /** Emits when a server changes its list of tools. */
  readonly changes$: Observable<ToolChanges>
  /**
   * Digests of the tools as they are now: pass them as `pins` to a later manager, in any process. A tool whose
   * description or schema has changed since then needs an approval.
   */
  readonly pins: Readonly<Record<string, string>>
  /** Calls a tool by the name that its server knows. Rejects with a `ToolError`. */
  call(
    server: string,
    tool: string,
    input: JsonObject,
    options?: McpCallOptions,
  ): Promise<readonly ResultPart[]>
  resources(server: string): Promise<readonly McpResource[]>
  readResource(server: string, uri: string): Promise<readonly ResultPart[]>
  prompts(server: string): Promise<readonly McpPrompt[]>
  getPrompt(
    server: string,
    prompt: string,
    input?: Readonly<Record<string, string>>,
  ): Promise<McpPromptMessages>
  /** Tries at once to connect to a failed server; resolves with its new status. */
  reconnect(server: string): Promise<McpServerStatus>
  /** Ends every connection, and every process with all that it started. Resolves when all have ended. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}
