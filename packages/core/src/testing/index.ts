export { manualClock, settle, type ManualClock } from './manual-clock.ts'
export {
  scriptedModel,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedReply,
  type ScriptedStep,
} from './scripted-model.ts'
export { testTool, type TestTool, type TestToolOptions } from './test-tool.ts'
