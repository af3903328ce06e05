#!/usr/bin/env bash
# The life of an order with curl: validated, submitted, modified, cancelled, refused, filled.
#
#   ./orders.sh [http://127.0.0.1:9090]
#
# Where the service requires a login, set TOKEN.
set -euo pipefail

url=${1:-http://127.0.0.1:9090}
# An id may be used once a day. A request that is repeated under its id has no second effect.
id=curl-$(date +%s%N)

# Sends a request and prints the answer. `Prefer` asks for the order in the answer to a write.
call() {
    local method=$1 path=$2 body=${3:-}
    printf '\n%s %s %s\n' "$method" "$path" "$body"
    curl --silent --show-error --fail-with-body --max-time 10 --write-out '\n' \
        --request "$method" \
        --header 'Prefer: return=representation' \
        ${TOKEN:+--header "Authorization: Bearer $TOKEN"} \
        ${body:+--header 'Content-Type: application/json' --data "$body"} "$url$path"
}

call GET '/rest/security.search?query=AAPL+type:STOCK'

# All checks of an order; nothing is sent.
call POST /rest/ext/execution/order/validate \
    '{"type":"LIMIT","securityId":1,"side":"BUY","quantity":5,"limit":200.25}'

call POST /rest/execution/order/limit \
    "{\"intId\":\"$id-1\",\"securityId\":1,\"side\":\"BUY\",\"quantity\":5,\"limit\":200.25}"
call POST /rest/execution/modify/order/limit "{\"intId\":\"$id-1\",\"quantity\":10,\"limit\":200.5}"
call GET "/rest/execution/order/$id-1"
call DELETE "/rest/execution/order/$id-1"

# A refused request has a status of 4xx, so that curl fails, and a body with a stable `code`.
if call POST /rest/execution/order/market \
    "{\"intId\":\"$id-2\",\"securityId\":1,\"side\":\"BUY\",\"quantity\":0.5}"; then
    echo "error: half a share was accepted" >&2
    exit 1
fi

call POST /rest/execution/order/market "{\"intId\":\"$id-3\",\"securityId\":1,\"side\":\"BUY\",\"quantity\":3}"
call GET /rest/position
