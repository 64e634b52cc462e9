#!/bin/sh
# Makes the secrets that docker-compose.yml mounts, each in a file of its own below ./secrets. What is there stays.
#
#   deploy/secrets.sh            makes what is missing
#   deploy/secrets.sh NAME       lets every part use the database NAME, after a restore into it
#
# URLs of PostgreSQL and Redis are written again, unless they lead to servers of your own. Optional secrets are made empty,
# which counts as not set. The folder is the owner's alone; a file is readable by all, since a container reads it as
# another user.
#
# To change a secret:
#   postgres_api_password, postgres_worker_password, redis_password, metrics_token
#       Delete its file, run this again, then `docker compose up -d --force-recreate`.
#   postgres_password
#       PostgreSQL reads the file only when its volume is new, so set the password there first:
#       `docker compose exec postgres psql -U roundhouse -c '\password'` runs `alter role`. Use letters and digits only, such as
#       `openssl rand -hex 32` prints. Delete the file, write the same text into it, run this again, and recreate as above.
#   grafana_password
#       Change it in Grafana, which reads the file only when its volume is new.
#   auth_secret
#       Never empty or delete it: second factors would be unusable. See docs/security.md, "Changing secrets".
set -eu
cd "$(dirname "$0")/.."
mkdir -p secrets/houses secrets/tls
chmod 700 secrets
chmod 755 secrets/houses secrets/tls

keep() { # name, text: writes it if the file is missing or empty
  [ -s "secrets/$1" ] || { rm -f "secrets/$1" && printf '%s' "$2" > "secrets/$1"; }
  chmod 444 "secrets/$1"
}
put() { rm -f "secrets/$1"; keep "$1" "$2"; }
put_url() { # name, text, our server: another server in the file was set by the operator, as after a failover
  if [ ! -s "secrets/$1" ] || grep -q "@$3" "secrets/$1"; then
    put "$1" "$2"
  elif [ -n "${database:-}" ] && [ "$1" != redis_url ]; then
    put "$1" "$(sed -E "s|^([a-z]+://[^/]*/)[^?]*|\\1$database|" "secrets/$1")"
    echo "secrets/$1 leads to another server: now to its database $database; check that it is there"
  else
    echo "secrets/$1 leads to another server and was kept: check that it is still right"
  fi
}
random() { od -An -tx1 -N32 /dev/urandom | tr -d ' \n'; }
secret() { cat "secrets/$1"; }

for name in postgres_password postgres_api_password postgres_worker_password redis_password auth_secret metrics_token grafana_password; do
  keep "$name" "$(random)"
done
for name in smtp_url staff_webhook_url database_read_url usdt_xpub usdt_rpc_urls binance_pay_key binance_pay_secret auth_secret_previous; do
  [ -e "secrets/$name" ] || : > "secrets/$name"
  chmod 644 "secrets/$name"
done
keep database_name roundhouse
if [ $# -gt 0 ]; then
  case $1 in *[!a-z0-9_]* | "" | [!a-z]*) echo "expected a name of small letters, digits and _, found $1" >&2; exit 2 ;; esac
  database=$1
  put database_name "$1"
  if [ -s secrets/database_read_url ]; then
    rm -f secrets/database_read_url && : > secrets/database_read_url && chmod 644 secrets/database_read_url
    echo "secrets/database_read_url is empty now, since its replica has another database; set it when a replica of $1 exists"
  fi
fi
url() { printf 'postgres://%s:%s@postgres:5432/%s' "$1" "$(secret "$2")" "$(secret database_name)"; }
put_url database_url "$(url roundhouse postgres_password)" postgres:5432/
put_url database_url_api "$(url roundhouse_api_login postgres_api_password)" postgres:5432/
put_url database_url_worker "$(url roundhouse_worker_login postgres_worker_password)" postgres:5432/
put_url redis_url "redis://:$(secret redis_password)@redis:6379" redis:6379
echo "secrets/ is ready; the database is $(secret database_name)"
