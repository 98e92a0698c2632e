export { recordingFetch, type RecordingFetchOptions } from './recording-fetch.ts'
export { playedFetch, type PlayedFetch, type PlayedFetchOptions } from './played-fetch.ts'
export { recordModel } from './record-model.ts'
export { playedModel, type PlayedModel, type PlayedModelOptions } from './played-model.ts'
