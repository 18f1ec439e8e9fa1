{{- define "operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* The release's name, with the chart's appended unless it is in there already. Names of what is installed end in
       up to eight letters more. */ -}}
{{- define "operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 55 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "operator.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 55 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 55 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "operator.serviceAccount" -}}
{{- default (include "operator.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- /* The one namespace that is served; empty: all. */ -}}
{{- define "operator.watchNamespace" -}}
{{- .Values.watchNamespace | default (ternary .Release.Namespace "" .Values.namespaced) -}}
{{- end -}}

{{- define "operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "operator.labels" -}}
{{ include "operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* The page is no operator: its pods have another name, so that nothing that selects operators selects them. */ -}}
{{- define "operator.pageSelectorLabels" -}}
app.kubernetes.io/name: {{ include "operator.name" . | trunc 58 | trimSuffix "-" }}-page
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "operator.pageLabels" -}}
{{ include "operator.pageSelectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* The series of this release, by labels that a ServiceMonitor gives them. */ -}}
{{- define "operator.series" -}}
namespace="{{ .Release.Namespace }}",job="{{ include "operator.fullname" . }}-metrics"
{{- end -}}
