// A server of runs on Node's own HTTP server.
export { type NodeHandler, nodeHandler } from './node/node-handler.ts'
export { type Listening, type ServeOptions, serve } from './node/serve.ts'
