<?php

declare(strict_types=1);

/** Speaks to a Tallystick server over HTTP. Needs the extension curl. */
final class Tallystick
{
    public function __construct(private readonly string $url, private readonly string $token)
    {
    }

    /** Starts a run, once for each key. Returns its id. */
    public function start(string $agent, string $input, string $key): string
    {
        return $this->send('POST', '/runs', ['agent' => $agent, 'input' => $input], $key)['runId'];
    }

    /** Waits until a run has stopped. Returns what it waits for, or how it ended. */
    public function result(string $runId, int $waitMs = 20000): array
    {
        do {
            $result = $this->send('GET', "/runs/$runId/result?waitMs=$waitMs");
        } while (($result['status'] ?? '') === 'under_way');
        return $result;
    }

    /** Approves the call as it was shown. If its input or attempt has changed, the decision has no effect. */
    public function approve(string $runId, array $call): array
    {
        $body = array_intersect_key($call, array_flip(['toolCallId', 'attempt', 'inputDigest']));
        return $this->send('POST', "/runs/$runId/approve", $body, "approve-{$call["toolCallId"]}-{$call["attempt"]}");
    }

    /** Supplies the result of a call whose work was done here. Settling it again changes nothing. */
    public function settle(string $runId, string $toolCallId, string $result): array
    {
        $body = ['toolCallId' => $toolCallId, 'result' => $result];
        return $this->send('POST', "/runs/$runId/settle", $body, "settle-$toolCallId");
    }

    /**
     * Follows a run after a given event: calls `$each` with every event as it is recorded, once and in order, until `$each`
     * returns false or the run has ended. Returns the number of the last event, after which another process can continue.
     */
    public function follow(string $runId, int $after, callable $each): int
    {
        $buffer = '';
        $goesOn = true;
        $curl = $this->request('GET', "/runs/$runId/events", ['accept: text/event-stream', "last-event-id: $after"]);
        curl_setopt($curl, CURLOPT_WRITEFUNCTION, function ($curl, string $piece) use (&$buffer, &$after, &$goesOn, $each): int {
            $buffer .= $piece;
            while ($goesOn && ($end = strpos($buffer, "\n\n")) !== false) {
                $frame = substr($buffer, 0, $end);
                $buffer = substr($buffer, $end + 2);
                $data = implode("\n", preg_filter('/^data: ?/', '', explode("\n", $frame)));
                if ($data === '') {
                    continue; // A comment, which shows that the stream is alive.
                }
                $event = json_decode($data, true, 512, JSON_THROW_ON_ERROR);
                $after = $event['seq'];
                $goesOn = $each($event) !== false;
            }
            return $goesOn ? strlen($piece) : 0; // Returning fewer bytes ends the transfer.
        });
        curl_exec($curl);
        if ($goesOn && curl_errno($curl) !== 0) {
            throw new RuntimeException('The stream broke: ' . curl_error($curl));
        }
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        if ($status >= 400) {
            throw new RuntimeException("The server answered $status to the reader of run $runId.");
        }
        return $after;
    }

    private function send(string $method, string $path, ?array $body = null, ?string $key = null): array
    {
        $headers = $key === null ? [] : ["idempotency-key: $key"];
        $curl = $this->request($method, $path, $body === null ? $headers : [...$headers, 'content-type: application/json']);
        curl_setopt($curl, CURLOPT_RETURNTRANSFER, true);
        curl_setopt($curl, CURLOPT_TIMEOUT, 60);
        if ($body !== null) {
            curl_setopt($curl, CURLOPT_POSTFIELDS, json_encode($body, JSON_THROW_ON_ERROR));
        }
        $text = curl_exec($curl);
        if ($text === false) {
            throw new RuntimeException("$method $path was not answered: " . curl_error($curl));
        }
        $answer = json_decode($text, true, 512, JSON_THROW_ON_ERROR);
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        // A command that the run no longer accepts, such as settling a call twice, is an answer too.
        if ($status >= 400 && $status !== 409) {
            throw new RuntimeException("$method $path: {$answer['code']}, " . ($answer['detail'] ?? ''));
        }
        return $answer;
    }

    private function request(string $method, string $path, array $headers): CurlHandle
    {
        $curl = curl_init($this->url . $path);
        curl_setopt_array($curl, [
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_HTTPHEADER => ["authorization: Bearer {$this->token}", ...$headers],
            CURLOPT_CONNECTTIMEOUT => 10,
        ]);
        return $curl;
    }
}
